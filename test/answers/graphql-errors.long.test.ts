import type { GraphQLFormattedError } from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { altered, json, text } from '../support/imitations/scripted.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';
import { someOf } from '../support/random/some-of.ts';

const PERSONS = '{ persons(first: 3) { items { id firstName } pageInfo { endCursor } } }';
const ALL = '{ allPersons(limit: 3) { id firstName } }';
const CONNECTION = '{ personsConnection(first: 3) { nodes { id firstName } } }';

interface Person {
  firstName: string | null;
}

test('an error of the service keeps its message, its path and its extensions', async () => {
  await using gateway = await startGatewayOverFake();
  const error = {
    message: 'Personal data are locked: "é" \u2028 {}',
    path: ['persons', 'items', 1, 'firstName'],
    extensions: { code: 'LOCKED', details: { since: [2024, null], by: { role: 'admin' } } },
  };
  gateway.upstream.answer(withErrors([{ ...error, locations: [{ line: 90_007_001, column: 7 }] }]));
  const { data, errors } = await gateway.ask<{ persons: { items: Person[] } }>(PERSONS);
  expect(data.persons.items.map((person) => person.firstName === null)).toEqual([
    false,
    true,
    false,
  ]);
  expect(errors).toEqual([expect.objectContaining(error)]);
});

test.each([
  ['allPersons', ALL, ['allPersons', 1, 'firstName']],
  ['personsConnection', CONNECTION, ['personsConnection', 'nodes', 1, 'firstName']],
])('an error of the service in %s has the path of the caller', async (_field, query, path) => {
  await using gateway = await startGatewayOverFake();
  const error = {
    message: 'Locked.',
    path: ['persons', 'items', 1, 'firstName'],
    extensions: { code: 'LOCKED' },
  };
  gateway.upstream.answer(withErrors([error]));
  const { errors } = await gateway.ask(query);
  expect(errors).toEqual([expect.objectContaining({ ...error, path })]);
});

test('locations are not passed on: they refer to the text that the gateway sent', async () => {
  await using gateway = await startGatewayOverFake();
  const locations = [{ line: 90_007_001, column: 7 }];
  gateway.upstream.answer(json({ errors: [{ message: 'No.', locations }] }));
  const { errors } = await gateway.ask(PERSONS);
  expect(JSON.stringify(errors)).not.toContain('90007001');
});

test.each([
  ['persons', PERSONS],
  ['allPersons', ALL],
  ['personsConnection', CONNECTION],
])('an error without data fails %s with the message of the service', async (field, query) => {
  await using gateway = await startGatewayOverFake();
  const error = { message: 'Out of order.', extensions: { code: 'CLOSED', until: 'noon' } };
  const bodies: { data?: unknown; errors: (typeof error & { path?: string[] })[] }[] = [
    { errors: [error] },
    { data: null, errors: [error] },
    { data: null, errors: [{ ...error, path: ['persons'] }] },
    { data: { persons: null }, errors: [{ ...error, path: ['persons'] }] },
    { data: {}, errors: [error] },
  ];
  for (const body of bodies) {
    gateway.upstream.answer(json(body));
    const { errors } = await gateway.ask(query);
    const [sent] = body.errors;
    const sentPath = 'path' in sent! ? { path: sent.path } : {};
    // Errors of forwarded fields are passed on unchanged: the gateway does not add a path.
    expect(errors).toEqual([{ ...error, ...(field === 'persons' ? sentPath : { path: [field] }) }]);
  }
});

test.each([400, 404, 409, 413, 422, 200, 202])(
  'GraphQL errors are passed on with status %i too',
  async (status) => {
    await using gateway = await startGatewayOverFake();
    const error = { message: 'Cannot do that.', extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } };
    gateway.upstream.answer(json({ errors: [error] }, status));
    const { errors } = await gateway.ask(PERSONS);
    expect(errors).toEqual([error]);
    expect(gateway.upstream.received).toHaveLength(1);
  },
);

test('the data of a 4xx answer are passed on', async () => {
  await using gateway = await startGatewayOverFake();
  const persons = { items: [{ id: '1', firstName: 'Ada' }], pageInfo: { endCursor: null } };
  gateway.upstream.answer(json({ data: { persons } }, 400));
  expect(await gateway.ask(PERSONS)).toEqual({ data: { persons } });
});

test.each([
  ['persons', PERSONS],
  ['allPersons', ALL],
  ['personsConnection', CONNECTION],
])('all errors of one answer arrive: %s', async (_field, query) => {
  await using gateway = await startGatewayOverFake();
  const sent = [
    { message: 'First of the name.', path: ['persons', 'items', 0, 'firstName'] },
    { message: 'Second of the name.', path: ['persons', 'items', 0, 'firstName'] },
    { message: 'Of another name.', path: ['persons', 'items', 2, 'firstName'] },
    { message: 'Beside a value that is there.', path: ['persons', 'items', 1, 'id'] },
    { message: 'Of the whole list.', path: ['persons'] },
    { message: 'Of no place.' },
  ];
  gateway.upstream.answer(
    altered((body) => {
      body.data['persons']!.items[0]!['firstName'] = null;
      body.data['persons']!.items[2]!['firstName'] = null;
      body.errors = sent;
    }),
  );
  const { errors = [] } = await gateway.ask(query);
  expect(errors.map(({ message }) => message).toSorted()).toEqual(
    sent.map(({ message }) => message).toSorted(),
  );
});

const odd: [string, unknown][] = [
  ['no message', {}],
  ['a message that is no string', { message: { a: 1 } }],
  ['a message that is null', { message: null }],
  ['null', null],
  ['a string', 'Oops.'],
  ['a number', 5],
  ['a list', ['Oops.']],
  ['a path that is a string', { message: 'Oops.', path: 'persons' }],
  ['a path that is an object', { message: 'Oops.', path: { 0: 'persons' } }],
  ['an empty path', { message: 'Oops.', path: [] }],
  ['a path with null', { message: 'Oops.', path: ['persons', null, 'id'] }],
  ['a path with a fraction', { message: 'Oops.', path: ['persons', 'items', 0.5] }],
  ['a path with a negative number', { message: 'Oops.', path: ['persons', 'items', -1] }],
  ['a path with a list', { message: 'Oops.', path: ['persons', ['items']] }],
  ['a path to another field', { message: 'Oops.', path: ['people', 'items', 0] }],
  ['a path that begins with a number', { message: 'Oops.', path: [0, 'items'] }],
  ['a path with its numbers as text', { message: 'Oops.', path: ['persons', 'items', '0', 'id'] }],
  ['a path below a leaf', { message: 'Oops.', path: ['persons', 'items', 0, 'id', 'x', 'y'] }],
  ['a path to a field that is not there', { message: 'Oops.', path: ['persons', 'gone', 'x'] }],
  ['a path to a field of a record', { message: 'Oops.', path: ['persons', 'items', 0, 'gone'] }],
  ['a path behind the end', { message: 'Oops.', path: ['persons', 'items', 3, 'firstName'] }],
  ['a path far behind the end', { message: 'Oops.', path: ['persons', 'items', 4_294_967_294] }],
  ['a path behind the end elsewhere', { message: 'Oops.', path: ['gone', 'items', 4_294_967_294] }],
  ['a path to the length', { message: 'Oops.', path: ['persons', 'items', 'length'] }],
  ['a path of ten thousand', { message: 'Oops.', path: Array(10_000).fill('persons') }],
  ['a path to the prototype', { message: 'Oops.', path: ['persons', '__proto__', 'spoilt'] }],
  ['a path to a method', { message: 'Oops.', path: ['persons', 'items', 'map'] }],
  ['locations that are nonsense', { message: 'Oops.', locations: 'here' }],
];

test.each(odd)(
  'an odd error does not affect the data that comes with it: %s',
  async (what, error) => {
    const from = odd.findIndex(([other]) => other === what);
    await using gateway = await startGatewayOverFake();
    for (const query of someOf([PERSONS, ALL, CONNECTION], from)) {
      const before = await gateway.ask(query);
      gateway.upstream.answer(altered((body) => (body.errors = [error])));
      const { data, errors } = await gateway.ask(query);
      expect(data, query).toEqual(before.data);
      expect(errors, query).toHaveLength(1);
      for (const { message, extensions } of errors ?? []) {
        expect(message, query).toMatch(/^Oops\.$|^The recruiting service reported an error\.$/);
        expect(extensions, query).toBeUndefined();
      }
      gateway.upstream.answer(altered(() => {}));
    }
    expect({}).not.toHaveProperty('spoilt');
  },
);

test('errors of a mutation are passed on like those of a query', async () => {
  await using gateway = await startRich();
  const error = {
    message: 'Too long.',
    path: ['renamed'],
    extensions: { code: 'INVALID', max: 8 },
  };
  gateway.upstream.answer(json({ data: { renamed: null }, errors: [error] }));
  expect(await gateway.ask('mutation { renamed: rename(id: 1, name: "x") { id } }')).toMatchObject({
    data: { renamed: null },
    errors: [error],
  });
});

/** Names are null where an error says so, as in a correct answer. */
function withErrors(errors: readonly GraphQLFormattedError[]) {
  return altered((body) => {
    for (const { path } of errors)
      body.data['persons']!.items[Number(path?.[2])]!['firstName'] = null;
    body.errors = errors;
  });
}

function startRich(): Promise<GatewayOverFake> {
  const { schema } = fullService();
  return startGatewayOverFake({ schema }, { snapshot: fullSdl, config: { mutations: 'all' } });
}

test('a query answered with GraphQL and a 5xx is sent again, and then gets the errors of the service', async () => {
  await using gateway = await startGatewayOverFake();
  const error = { message: 'The search index is down.', extensions: { code: 'INDEX_DOWN' } };
  gateway.upstream.answer(json({ errors: [error] }, 500));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors).toEqual([error]);
  expect(gateway.upstream.received.length).toBeGreaterThan(1);
});

test('an error at a field that was not requested does not affect the field that was', async () => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(
    altered((body) => {
      Object.assign(body.data, { people: null });
      body.errors = [{ message: 'Elsewhere.', path: ['people', 'items', 4_294_967_294] }];
    }),
  );
  const { data, errors } = await gateway.ask<{ persons: { items: Person[] } }>(PERSONS);
  expect(data.persons.items).toHaveLength(3);
  expect(errors).toEqual([{ message: 'Elsewhere.', path: ['people', 'items', 4_294_967_294] }]);
});

test('a byte order mark before the JSON is ignored', async () => {
  await using gateway = await startGatewayOverFake();
  const body = JSON.stringify({ data: { persons: { items: [], pageInfo: { endCursor: null } } } });
  gateway.upstream.answer(text(`\uFEFF${body}`, 200));
  const { data } = await gateway.ask<{ persons: { items: Person[] } }>(PERSONS);
  expect(data.persons.items).toEqual([]);
});
