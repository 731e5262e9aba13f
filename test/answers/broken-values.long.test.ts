import { describe, expect, test } from 'vitest';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { PERSONS, fullSdl, fullService } from '../support/imitations/honest.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { altered, json, text, type AnsweredPage } from '../support/imitations/scripted.ts';
import { someOf } from '../support/random/some-of.ts';

const CANDIDATES = [1, 2, 3].map((id) => `{ __typename: "Candidate", id: ${id} }`).join(' ');

type Path = (string | number)[];
/** The three fields that return the records of a list, each with the path of the record at `index`. */
function waysTo(field: string, selection: string, first = 3) {
  const all = `all${field[0]!.toUpperCase()}${field.slice(1)}`;
  const connection = `${field}Connection`;
  return [
    {
      query: `{ ${field}(first: ${first}) { items ${selection} } }`,
      list: [field, 'items'],
    },
    { query: `{ ${all}(limit: ${first}) ${selection} }`, list: [all] },
    {
      query: `{ ${connection}(first: ${first}) { nodes ${selection} } }`,
      list: [connection, 'nodes'],
    },
    {
      query: `{ ${connection}(first: ${first}) { edges { node ${selection} } } }`,
      list: [connection, 'edges'],
      below: ['node'],
    },
  ] as { query: string; list: Path; below?: Path }[];
}

const recordValues: [string, string, string, (record: Record<string, unknown>) => unknown][] = [
  ['null for an id', '{ id }', 'id', (record) => (record['id'] = null)],
  ['an id that was left out', '{ id }', 'id', (record) => delete record['id']],
  ['a name that was left out', '{ name }', 'name', (record) => delete record['name']],
  ['an object that was left out', '{ vacancy { id } }', 'vacancy', (r) => delete r['vacancy']],
  ['a list that was left out', '{ friends { id } }', 'friends', (r) => delete r['friends']],
  ['an object for an id', '{ id }', 'id', (record) => (record['id'] = { value: 1 })],
  ['a list for an Int', '{ id }', 'id', (record) => (record['id'] = [1])],
  ['a number too large for Int', '{ rank }', 'rank', (record) => (record['rank'] = 2 ** 31)],
  ['a fraction for Int', '{ rank }', 'rank', (record) => (record['rank'] = 0.5)],
  ['text for Int', '{ rank }', 'rank', (record) => (record['rank'] = '7')],
  ['true for Int', '{ rank }', 'rank', (record) => (record['rank'] = true)],
  ['text for Float', '{ score }', 'score', (record) => (record['score'] = '0.5')],
  ['a number for String', '{ name }', 'name', (record) => (record['name'] = 5)],
  ['a list for String', '{ name }', 'name', (record) => (record['name'] = ['Ada'])],
  ['an unknown enum value', '{ stage }', 'stage', (record) => (record['stage'] = 'FIRED')],
  ['a number for an enum', '{ stage }', 'stage', (record) => (record['stage'] = 1)],
  ['an enum value in lower case', '{ stage }', 'stage', (record) => (record['stage'] = 'new')],
  ['a list for an object', '{ vacancy { id } }', 'vacancy', (record) => (record['vacancy'] = [])],
  ['text for an object', '{ vacancy { id } }', 'vacancy', (record) => (record['vacancy'] = 'x')],
  ['false for an object', '{ vacancy { id } }', 'vacancy', (record) => (record['vacancy'] = false)],
  ['an object for a list', '{ friends { id } }', 'friends', (record) => (record['friends'] = {})],
  ['text for a list', '{ friends { id } }', 'friends', (record) => (record['friends'] = 'x')],
];

test.each(recordValues)(
  '%s is an error at its own path, in every kind of field',
  async (what, selection, field, change) => {
    await using gateway = await startRich();
    const from = recordValues.findIndex(([other]) => other === what);
    for (const { query, list, below = [] } of someOf(waysTo('activeCandidates', selection), from)) {
      gateway.upstream.answer(
        altered(({ data }) => void change(data['activeCandidates']!.items[1]!)),
      );
      const { errors } = await gateway.ask(query);
      expect(errors, query).toMatchObject([
        { path: [...list, 1, ...below, field], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } },
      ]);
    }
  },
);

test('a nullable field with a broken value costs only itself', async () => {
  await using gateway = await startRich();
  for (const { query, list, below = [] } of waysTo('activeCandidates', '{ id name }')) {
    gateway.upstream.answer(
      altered(({ data }) => (data['activeCandidates']!.items[1]!['name'] = 5)),
    );
    const { data } = await gateway.ask(query);
    const records = list.reduce<unknown>((value, key) => (value as never)[key], data) as unknown[];
    const [first, second, third] = records.map((record) =>
      below.reduce<unknown>((value, key) => (value as never)[key], record),
    );
    expect([first, second, third]).toEqual([
      { id: 1, name: 'Candidate 1' },
      { id: 2, name: null },
      { id: 3, name: 'Candidate 3' },
    ]);
  }
});

test.each([
  ['null', null],
  ['text', 'x'],
  ['a number', 7],
  ['a list', []],
  ['true', true],
])('%s for a record that cannot be null is an error at its path', async (_what, value) => {
  await using gateway = await startRich();
  for (const { query, list, below = [] } of waysTo('activeCandidates', '{ id }')) {
    gateway.upstream.answer(
      altered(({ data }) => {
        data['activeCandidates']!.items[1] = value as never;
      }),
    );
    const { errors } = await gateway.ask(query);
    expect(errors, query).toMatchObject([
      { path: [...list, 1, ...below], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } },
    ]);
  }
});

test('null for a record that may be null is null', async () => {
  await using gateway = await startRich();
  for (const { query } of waysTo('candidates', '{ id }')) {
    gateway.upstream.answer(
      altered(({ data }) => {
        data['candidates']!.items[1] = null as never;
      }),
    );
    const { errors } = await gateway.ask(query);
    expect(errors, query).toBeUndefined();
  }
});

test.each([
  ['an unknown type', 'Ghost'],
  ['a type that is no part of the union', 'Vacancy'],
  ['a type that is no object', 'Stage'],
  ['no type', undefined],
  ['null for the type', null],
  ['a number for the type', 5],
  ['the name of a method', 'constructor'],
  ['the prototype', '__proto__'],
])('%s for a record of a union is an error at its path', async (_what, typename) => {
  await using gateway = await startRich();
  const selection = '{ __typename ... on Candidate { stage } }';
  for (const { query, list, below = [] } of waysTo('applicants', selection)) {
    gateway.upstream.answer(
      altered(({ data }) => {
        const record = data['applicants']!.items[1]!;
        Object.assign(record, { _rsType: typename, __typename: typename });
      }),
    );
    const { errors } = await gateway.ask(query);
    expect(errors, query).toMatchObject([
      { path: [...list, 1, ...below], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } },
    ]);
  }
});

const pages: [string, (page: AnsweredPage) => unknown][] = [
  ['no items', (page) => delete (page as Partial<AnsweredPage>).items],
  ['null for items', (page) => (page.items = null as never)],
  ['an object for items', (page) => (page.items = {} as never)],
  ['text for items', (page) => (page.items = 'x' as never)],
  ['no pageInfo', (page) => delete (page as Partial<AnsweredPage>).pageInfo],
  ['null for pageInfo', (page) => (page.pageInfo = null as never)],
  ['a list for pageInfo', (page) => (page.pageInfo = [] as never)],
  ['text for pageInfo', (page) => (page.pageInfo = 'x' as never)],
  ['null for hasNextPage', (page) => (page.pageInfo['hasNextPage'] = null)],
  ['text for hasNextPage', (page) => (page.pageInfo['hasNextPage'] = 'false')],
  ['a number for hasNextPage', (page) => (page.pageInfo['hasNextPage'] = 0)],
  ['an object for endCursor', (page) => (page.pageInfo['endCursor'] = { a: 1 })],
];

test.each(pages)('a page with %s is a coded error at the list', async (_what, change) => {
  await using gateway = await startGatewayOverFake();
  for (const [field, query] of [
    ['persons', '{ persons(first: 3) { items { id } pageInfo { hasNextPage endCursor } } }'],
    ['allPersons', '{ allPersons { id } }'],
    ['personsConnection', '{ personsConnection(first: 60) { nodes { id } } }'],
  ] as const) {
    gateway.upstream.answer(altered(({ data }) => void change(data['persons']!)));
    const { errors } = await gateway.ask(query);
    expect(errors, query).toHaveLength(1);
    expect(errors![0]!.path?.[0], query).toBe(field);
    expect(errors![0]!.extensions?.['code'], query).toMatch(
      /^(UPSTREAM_BAD_RESPONSE|DRAIN_STALLED|DRAIN_INTERRUPTED)$/,
    );
  }
});

test.each([
  ['null', null],
  ['a number', 5],
  ['text', 'x'],
  ['a list', []],
  ['nothing', undefined],
])('%s for the whole list is UPSTREAM_BAD_RESPONSE at its field', async (_what, persons) => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(json({ data: { persons } }));
  for (const [field, query] of [
    ['persons', '{ persons(first: 3) { items { id } } }'],
    ['people', '{ people: persons(first: 3) { items { id } } }'],
    ['allPersons', '{ allPersons { id } }'],
    ['personsConnection', '{ personsConnection { nodes { id } } }'],
  ] as const) {
    const { errors } = await gateway.ask(query);
    expect(errors, query).toMatchObject([
      { path: [field], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } },
    ]);
  }
});

describe.each([
  ['null for all data', { data: null }],
  ['an object without the field', { data: {} }],
])('%s without errors', (_what, answer) => {
  test.each([
    ['candidate', '{ candidate(id: 1) { id } }'],
    ['failing', '{ failing }'],
    ['events', '{ events(candidate: 1) { items { text } } }'],
    ['allEvents', '{ allEvents(candidate: 1) { text } }'],
    ['eventsConnection', '{ eventsConnection(candidate: 1) { nodes { text } } }'],
    ['eventsConnection', '{ eventsConnection(candidate: 1) { totalCount } }'],
    ['allCandidates', '{ allCandidates { id } }'],
    [
      '_entities',
      '{ _entities(representations: [{ __typename: "Candidate", id: 1 }]) { __typename } }',
    ],
    ['_entities', `{ _entities(representations: [${CANDIDATES}]) { ... on Candidate { id } } }`],
  ])('is UPSTREAM_BAD_RESPONSE at %s: %s', async (field, query) => {
    await using gateway = await startRich();
    gateway.upstream.answer(json(answer));
    const { errors = [] } = await gateway.ask(query);
    expect(errors.length, query).toBeGreaterThan(0);
    for (const error of errors) {
      expect(error).toMatchObject({ extensions: { code: 'UPSTREAM_BAD_RESPONSE' } });
      expect(error.path![0]).toBe(field);
    }
    expect(gateway.upstream.received).toHaveLength(1);
  });

  test('is UPSTREAM_BAD_RESPONSE for a record that is looked up in a list', async () => {
    await using gateway = await startGatewayOverFake();
    gateway.upstream.answer(json(answer));
    const { errors } = await gateway.ask('{ person(id: "1") { id } }');
    expect(errors).toMatchObject([broken('person')]);
  });

  test('is UPSTREAM_BAD_RESPONSE for further pages of a nested list', async () => {
    await using gateway = await startRich();
    const page = altered(({ data }) => {
      const { vacancies } = data as never as { vacancies: { items: Record<string, never>[] } };
      for (const key of Object.keys(vacancies.items[0]!)) {
        if (key.startsWith('_rsPage')) delete vacancies.items[0]![key];
      }
    });
    gateway.upstream.answer(page, json(answer));
    const { errors } = await gateway.ask(
      '{ vacancies(first: 1) { items { allCandidates(limit: 2) { id } } } }',
    );
    expect(errors).toMatchObject([broken('vacancies', 'items', 0, 'allCandidates')]);
  });
});

test('null for a record of a batch means that it does not exist, and a missing record is an error', async () => {
  await using gateway = await startRich();
  for (const other of [{}, { errors: [{ message: 'Slow.' }] }]) {
    gateway.upstream.answer(json({ data: { _rsRecord0: null, _rsRecord2: { id: 3 } }, ...other }));
    const { data, errors } = await gateway.ask(
      `{ _entities(representations: [${CANDIDATES}]) { ... on Candidate { id } } }`,
    );
    expect(data).toEqual({ _entities: [null, null, { id: 3 }] });
    const isExplained = 'errors' in other;
    expect(errors).toMatchObject(
      isExplained ? [{ message: 'Slow.' }, { message: 'Slow.' }] : [broken('_entities', 1)],
    );
  }
});

test('a broken page in the middle of a drain reports where to resume', async () => {
  await using gateway = await startGatewayOverFake();
  const untouched = altered(() => {});
  gateway.upstream.answer(
    untouched,
    altered(({ data }) => (data['persons']!.pageInfo = null as never)),
    untouched,
  );
  const { errors } = await gateway.ask('{ allPersons { id } }');
  expect(errors).toMatchObject([
    {
      path: ['allPersons'],
      extensions: { code: 'DRAIN_INTERRUPTED', drained: 50, reason: 'UPSTREAM_BAD_RESPONSE' },
    },
  ]);
  const { data } = await gateway.ask<{ allPersons: { id: string }[] }>(
    'query ($after: String) { allPersons(after: $after) { id } }',
    { after: errors![0]!.extensions['resumeAfter'] },
  );
  expect(data.allPersons.map(({ id }) => id)).toEqual(
    gateway.upstream.sandbox.persons.slice(50, 1000).map(({ id }) => id),
  );
});

test('values that the type allows in more than one form are accepted', async () => {
  await using gateway = await startGatewayOverFake();
  for (const { query } of waysTo('persons', '{ id firstName }', 2)) {
    gateway.upstream.answer(
      altered(({ data }) => {
        Object.assign(data['persons']!.items[0]!, { id: 7, firstName: '' });
        Object.assign(data['persons']!.items[1]!, { id: '', firstName: '\u0000𝒜' });
      }),
    );
    const { data, errors } = await gateway.ask(query);
    expect(errors, query).toBeUndefined();
    expect(JSON.stringify(data)).toContain('"id":"7","firstName":""');
    expect(JSON.stringify(data)).toContain(JSON.stringify({ id: '', firstName: '\u0000𝒜' }));
  }
});

test('fields that were not requested are not passed on', async () => {
  await using gateway = await startGatewayOverFake();
  for (const { query } of waysTo('persons', '{ id }')) {
    gateway.upstream.answer(
      altered(({ data }) => {
        for (const person of data['persons']!.items) person['salary'] = 'too much';
        data['secrets'] = 'too much' as never;
      }),
    );
    const answer = await gateway.ask(query);
    expect(answer.errors).toBeUndefined();
    expect(JSON.stringify(answer)).not.toContain('too much');
  }
});

test('a value of a custom scalar is passed as it is, whatever its form', async () => {
  await using gateway = await startRich();
  const extra = [{ a: [null, 1.5, 'x'] }, { b: {} }];
  for (const { query } of waysTo('activeCandidates', '{ extra }', 1)) {
    gateway.upstream.answer(
      altered(({ data }) => (data['activeCandidates']!.items[0]!['extra'] = extra)),
    );
    const { data, errors } = await gateway.ask(query);
    expect(errors, query).toBeUndefined();
    expect(JSON.stringify(data)).toContain(JSON.stringify({ extra }));
  }
});

test('"then" is a key like any other, and is left out unless it was requested', async () => {
  await using gateway = await startRich();
  const me = '{"_rsType":"Candidate","id":1,"then":"x","extra":{"then":"x"}}';
  gateway.upstream.answer(text(`{"data":{"me":${me}}}`));
  expect(await gateway.ask('{ me { id } }')).toEqual({ data: { me: { id: 1 } } });
  const response = await gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: '{ me { ... on Candidate { extra } } }' }),
  });
  expect(await response.text()).toBe('{"data":{"me":{"extra":{"then":"x"}}}}');
});

test('a broken value in the answer of a mutation is an error at its path', async () => {
  await using gateway = await startRich();
  gateway.upstream.answer(json({ data: { rename: { id: 'x', name: 'Ada' } } }));
  expect(await gateway.ask('mutation { rename(id: 1, name: "Ada") { id name } }')).toMatchObject({
    data: { rename: null },
    errors: [{ path: ['rename', 'id'], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }],
  });
});

describe('root fields that are null although their types do not allow it', () => {
  const SDL = `${PERSONS} type Person { id: ID! } extend type Query { a: String b: String! c: String! }`;
  const refusal = { message: 'C is locked.', path: ['c'], extensions: { code: 'LOCKED' } };
  const tooMany = {
    representations: Array.from({ length: 10_001 }, () => ({ __typename: 'Person', id: '1' })),
  };
  const entities = '_entities(representations: $representations) { __typename }';

  test.each([
    ['both null', '{ b c a }', { b: null, c: null, a: '1' }, [broken('b')]],
    ['both left out', '{ c b a }', { a: '1' }, [broken('c')]],
    ['and others of a wrong type', '{ b a c }', { a: 1, b: null, c: 2 }, [broken('b')]],
    ['behind another wrong value', '{ a b c }', { a: 1, c: 2 }, [broken('a'), broken('b')]],
    ['no data at all', '{ b c }', null, [broken('b')]],
  ])('have one error, like one null in graphql-js: %s', async (_, query, data, errors) => {
    await using gateway = await startGatewayOverFake({ persons: 0 }, { snapshot: SDL });
    gateway.upstream.answer(json({ data }));
    expect(await gateway.ask(query)).toMatchObject({ data: null, errors });
  });

  test('have the errors of the service, too', async () => {
    await using gateway = await startGatewayOverFake({ persons: 0 }, { snapshot: SDL });
    gateway.upstream.answer(json({ data: { b: null, c: null, a: '1' }, errors: [refusal] }));
    expect(await gateway.ask('{ b c a }')).toMatchObject({
      data: null,
      errors: [refusal, broken('b')],
    });
  });

  test('have one error together with fields that the gateway answers', async () => {
    await using gateway = await startGatewayOverFake({ persons: 0 }, { snapshot: SDL });
    gateway.upstream.answer(json({ data: { b: null, c: null } }));
    const refusedX = { path: ['x'], extensions: { code: 'OPERATION_TOO_COMPLEX' } };
    for (const [fields, error] of [
      [`b c x: ${entities}`, broken('b')],
      [`x: ${entities} b c`, broken('b')],
      [`x: ${entities} y: ${entities}`, refusedX],
    ] as const) {
      const query = `query ($representations: [_Any!]!) { ${fields} }`;
      expect(await gateway.ask(query, tooMany)).toMatchObject({ data: null, errors: [error] });
    }
  });
});

function broken(...path: Path) {
  return { path, extensions: { code: 'UPSTREAM_BAD_RESPONSE' } };
}

function startRich(config: TestGatewayOptions['config'] = {}) {
  const { schema } = fullService();
  return startGatewayOverFake(
    { schema },
    {
      snapshot: fullSdl,
      overrides: { fields: { 'Query.events': { identity: 'at' } } },
      config: { mutations: 'all', ...config },
    },
  );
}
