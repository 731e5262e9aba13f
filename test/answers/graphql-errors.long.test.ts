import type { GraphQLFormattedError } from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { fullSdl } from '../support/imitations/honest.ts';
import { altered, json, text } from '../support/imitations/scripted.ts';
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
  // Locations would refer to the text that the gateway sent.
  expect(errors).toEqual([error]);
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

test.each([404, 413, 202])('GraphQL errors are passed on with status %i too', async (status) => {
  await using gateway = await startGatewayOverFake();
  const error = { message: 'Cannot do that.', extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } };
  gateway.upstream.answer(json({ errors: [error] }, status));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors).toEqual([error]);
  expect(gateway.upstream.received).toHaveLength(1);
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

test.each([
  [
    'a forwarded list',
    '{ activeCandidates { items { x: extra } } }',
    ['activeCandidates', 'items'],
  ],
  ['a drained list', '{ allActiveCandidates { x: extra } }', ['allActiveCandidates']],
])(
  'an error inside a custom scalar of %s keeps its path, and the scalar is unchanged',
  async (_, query, list) => {
    await using gateway = await startGatewayOverFake({}, { snapshot: fullSdl });
    const extra = { list: [null, { deep: null }] };
    const items = [{ x: extra }];
    const path = ['activeCandidates', 'items', 0, 'x', 'list', 1, 'deep'];
    gateway.upstream.answer(
      json({
        data: { activeCandidates: { items, pageInfo: LAST } },
        errors: [{ message: 'Inside.', path }],
      }),
    );
    const { data, errors } = await gateway.ask(query);
    expect(JSON.stringify(data)).toContain(JSON.stringify({ x: extra }));
    expect(errors).toEqual([{ message: 'Inside.', path: [...list, ...path.slice(2)] }]);
  },
);

const odd: [string, unknown][] = [
  ['no message', {}],
  ['a message that is no string', { message: { a: 1 } }],
  ['null', null],
  ['a list', ['Oops.']],
  ['a path that is a string', { message: 'Oops.', path: 'persons' }],
  ['an empty path', { message: 'Oops.', path: [] }],
  ['a path with null', { message: 'Oops.', path: ['persons', null, 'id'] }],
  ['a path with a negative number', { message: 'Oops.', path: ['persons', 'items', -1] }],
  ['a path to another field', { message: 'Oops.', path: ['people', 'items', 0] }],
  ['a path with its numbers as text', { message: 'Oops.', path: ['persons', 'items', '0', 'id'] }],
  ['a path below a leaf', { message: 'Oops.', path: ['persons', 'items', 0, 'id', 'x', 'y'] }],
  ['a path to a field of a record', { message: 'Oops.', path: ['persons', 'items', 0, 'gone'] }],
  ['a path far behind the end', { message: 'Oops.', path: ['persons', 'items', 4_294_967_294] }],
  ['a path of ten thousand', { message: 'Oops.', path: Array(10_000).fill('persons') }],
  ['a path to the prototype', { message: 'Oops.', path: ['persons', '__proto__', 'spoilt'] }],
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

/** Names are null where an error says so, as in a correct answer. */
function withErrors(errors: readonly GraphQLFormattedError[]) {
  return altered((body) => {
    for (const { path } of errors)
      body.data['persons']!.items[Number(path?.[2])]!['firstName'] = null;
    body.errors = errors;
  });
}

test('a query answered with GraphQL and a 5xx is sent again, and then gets the errors of the service', async () => {
  await using gateway = await startGatewayOverFake();
  const error = { message: 'The search index is down.', extensions: { code: 'INDEX_DOWN' } };
  gateway.upstream.answer(json({ errors: [error] }, 500));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors).toEqual([error]);
  expect(gateway.upstream.received.length).toBeGreaterThan(1);
});

test.each([
  ['before the data', (data: string) => `{"extensions":{"cost":12},${data}}`],
  ['behind the data', (data: string) => `{${data},"extensions":{"cost":12}}`],
  ['with null errors', (data: string) => `{${data},"errors":null,"extensions":null}`],
  ['behind a byte order mark', (data: string) => `\uFEFF{${data}}`],
])('what the service adds to the data of a list is no part of it: %s', async (_, spell) => {
  await using gateway = await startGatewayOverFake();
  const page = { items: [{ id: '1', firstName: 'Ada' }], pageInfo: LAST };
  gateway.upstream.answer(text(spell(`"data":${JSON.stringify({ persons: page })}`), 200));
  expect(await gateway.ask(ALL)).toEqual({ data: { allPersons: page.items } });
  expect(await gateway.ask(CONNECTION)).toEqual({
    data: { personsConnection: { nodes: page.items } },
  });
});

const LAST = { hasNextPage: false, endCursor: null };
