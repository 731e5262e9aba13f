import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  startGatewayOverService,
  startOverFullService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { post } from '../support/clients/post.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { altered, honest, type AnsweredPage, json, text } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';

type Path = (string | number)[];

/** The three ways to the records of a list, with the path at which each has them. */
type Way = readonly [field: string, query: string, records: Path];
const WAYS: readonly [Way, Way, Way] = [
  ['persons', '{ persons(first: 3) { items { id name: firstName } } }', ['persons', 'items']],
  ['allPersons', '{ allPersons(limit: 3) { id name: firstName } }', ['allPersons']],
  [
    'personsConnection',
    '{ personsConnection(first: 3) { nodes { id name: firstName } } }',
    ['personsConnection', 'nodes'],
  ],
];

let world: GatewayOverService;
beforeAll(async () => {
  world = await startGatewayOverService();
});
afterAll(() => world[Symbol.asyncDispose]());

/** Errors of records, beside honest data. Names are null where an error says so. */
function withErrors(errors: readonly unknown[]) {
  return altered((body) => {
    body.errors = errors;
    for (const error of errors) {
      const [, , index, field] = (error as { path?: Path } | null)?.path ?? [];
      if (field === 'name') body.data['persons']!.items[Number(index)]!['name'] = null;
    }
  });
}

test.each(WAYS)('errors of records in %s have the path of the caller', async (_, query, at) => {
  const locked = {
    message: 'Locked: "é" \u2028 {}',
    extensions: { code: 'LOCKED', by: [{ a: null }] },
  };
  const sent = [
    // Locations would refer to the text that the gateway sent.
    { ...locked, path: ['persons', 'items', 1, 'name'], locations: [{ line: 9, column: 7 }] },
    { message: 'Another of that name.', path: ['persons', 'items', 1, 'name'] },
    { message: 'Of another name.', path: ['persons', 'items', 2, 'name'] },
    { message: 'Beside a value that is there.', path: ['persons', 'items', 0, 'id'] },
    { message: 'Of the whole list.', path: ['persons'] },
    { message: 'Of no place.' },
  ];
  world.service.answer(withErrors(sent));
  const { data, errors = [] } = await world.ask(query);
  const names = (valueAt(data, at) as { name: unknown }[]).map(({ name }) => name === null);
  expect(names).toEqual([false, true, true]);
  expect(errors.map(({ message }) => message).toSorted()).toEqual(
    sent.map(({ message }) => message).toSorted(),
  );
  expect(errors).toContainEqual({ ...locked, path: [...at, 1, 'name'] });
  expect(errors).toContainEqual({ message: 'Of another name.', path: [...at, 2, 'name'] });
});

test('errors of records in edges have the aliases of the caller', async () => {
  world.service.answer(withErrors([{ message: 'Locked.', path: ['persons', 'items', 1, 'name'] }]));
  const { errors } = await world.ask(
    '{ personsConnection(first: 3) { rows: edges { who: node { id name: firstName } } } }',
  );
  const path = ['personsConnection', 'rows', 1, 'who', 'name'];
  expect(errors).toEqual([{ message: 'Locked.', path }]);
});

test.each(WAYS)(
  'an error without data fails %s with the words of the service',
  async (field, query) => {
    const error = { message: 'Out of order.', extensions: { code: 'CLOSED', until: 'noon' } };
    const placed = { ...error, path: ['persons'] };
    for (const reply of [
      json({ errors: [error] }),
      json({ data: null, errors: [placed] }),
      json({ data: { persons: null }, errors: [placed] }),
      json({ data: {}, errors: [error] }),
      json({ errors: [error] }, 404),
      json({ errors: [error] }, 202),
      // A query is sent again after a 5xx, and then gets the errors of the service.
      json({ errors: [error] }, 500),
    ]) {
      world.service.answer(reply);
      const { errors } = await world.ask(query);
      // Errors of forwarded fields are passed on unchanged: the gateway does not add a path.
      if (field === 'persons') expect(errors).toMatchObject([error]);
      else expect(errors).toEqual([{ ...error, path: [field] }]);
    }
  },
);

function valueAt(data: unknown, path: Path): unknown {
  return path.reduce((value, step) => (value as never)[step], data);
}

const at = (...path: unknown[]) => ({ message: 'Oops.', path });

test.each<[string, unknown]>([
  ['no message', {}],
  ['a message that is not a string', { message: { a: 1 } }],
  ['null', null],
  ['a path that is a string', { message: 'Oops.', path: 'persons' }],
  ['a path with null', at('persons', null, 'id')],
  ['a path to another field', at('people', 'items', 0)],
  ['a path below a leaf', at('persons', 'items', 0, 'id', 'x', 'y')],
  ['a path of ten thousand', at(...Array<string>(10_000).fill('persons'))],
  ['a path to the prototype', at('persons', '__proto__', 'spoilt')],
])('an odd error does not affect the data that comes with it: %s', async (_, error) => {
  for (const [, query] of WAYS) {
    world.service.answer(altered(() => {}));
    const { data: unspoilt } = await world.ask(query);
    world.service.answer(withErrors([error]));
    const { data, errors = [] } = await world.ask(query);
    expect(data, query).toEqual(unspoilt);
    expect(errors, query).toHaveLength(1);
    expect(errors[0]!.message, query).toMatch(
      /^Oops\.$|^The recruiting service reported an error\.$/,
    );
  }
  expect({}).not.toHaveProperty('spoilt');
});

type Data = Record<string, unknown>;
const onPage =
  (change: (page: AnsweredPage) => unknown) =>
  ({ data }: { data: Data }): void =>
    void change(data['persons'] as AnsweredPage);

test.each<[string, (answer: { data: Data }) => unknown]>([
  ['no items', onPage((page) => delete (page as Partial<AnsweredPage>).items)],
  ['text for items', onPage((page) => (page.items = 'x' as never))],
  ['no pageInfo', onPage((page) => delete (page as Partial<AnsweredPage>).pageInfo)],
  ['null for pageInfo', onPage((page) => (page.pageInfo = null as never))],
  ['text for hasNextPage', onPage((page) => (page.pageInfo['hasNextPage'] = 'false'))],
  ['an object for endCursor', onPage((page) => (page.pageInfo['endCursor'] = { a: 1 }))],
  ['a number for a page', (answer) => (answer.data = { persons: 5, _rsRecord0: 'x' })],
  ['null for all data', (answer) => (answer.data = null as never)],
  ['no field of the page', (answer) => (answer.data = {})],
])('an answer with %s is a coded error at the list', async (_, change) => {
  await using gateway = await startGatewayOverService();
  gateway.service.answer(altered((answer) => void change(answer)));
  for (const [field, query] of [
    ['allPersons', '{ allPersons { id } }'],
    ['personsConnection', '{ personsConnection(first: 60) { nodes { id } } }'],
  ] as const) {
    const { errors } = await gateway.ask(query);
    expect(errors, query).toHaveLength(1);
    expect(errors![0]!.path?.[0], query).toBe(field);
    expect(errors![0]!.extensions?.['code'], query).toMatch(
      /^(UPSTREAM_BAD_RESPONSE|DRAIN_STALLED|DRAIN_INTERRUPTED)$/,
    );
  }
});

const ROWS = `
  scalar Any
  type Query { rows(first: Int, after: String): Rows! row(id: ID!): Row }
  type Rows { items: [Row!]! pageInfo: PageInfo! }
  type Row { id: ID! size: Any many: [Any] }
  type PageInfo { hasNextPage: Boolean! endCursor: String }`;

test.each<[string, (data: string) => string]>([
  ['with extensions before the data', (data) => `{"extensions":{"cost":12},${data}}`],
  ['with null errors', (data) => `{${data},"errors":null,"extensions":null}`],
  ['with white space', (data) => `\r\n\t ${JSON.stringify(JSON.parse(`{${data}}`), null, 2)}\n`],
  ['with other escapes', (data) => `{${data.replaceAll('Ada', '\\u0041d\\u0061')}}`],
])('an answer %s has the records that it says', async (_, spell) => {
  const records = [{ id: '1', name: 'Ada é "\\/ \u2028 😀' }];
  const page = { items: records, pageInfo: { hasNextPage: false, endCursor: null } };
  for (const [, query, path] of WAYS) {
    world.service.answer(text(spell(`"data":${JSON.stringify({ persons: page })}`), 200));
    const { data, errors } = await world.ask(query);
    expect([valueAt(data, path), errors ?? []]).toEqual([records, []]);
  }
});

test('a custom scalar of a record is passed as it is, with an error inside of it', async () => {
  await using gateway = await startGatewayOverService({}, { snapshot: ROWS });
  const deep = JSON.parse('['.repeat(400) + ']'.repeat(400)) as unknown;
  const size = [{ a: [null, 1.5, 'x'], __typename: 'PageInfo', _rs: 1 }, { b: deep }];
  const path = ['rows', 'items', 0, 'x', 0, 'a', 0];
  const pageInfo = { hasNextPage: false, endCursor: null };
  const data = { rows: { items: [{ id: '1', x: size }], pageInfo } };
  gateway.service.answer(json({ data, errors: [{ message: 'Inside.', path }] }));
  for (const [query, records] of [
    ['{ rows { items { x: size } } }', ['rows', 'items']],
    ['{ allRows { x: size } }', ['allRows']],
    ['{ rowsConnection { nodes { x: size } } }', ['rowsConnection', 'nodes']],
  ] as const) {
    const answer = await gateway.ask(query);
    expect(JSON.stringify(answer.data)).toContain(JSON.stringify(size));
    expect(answer.errors).toEqual([{ message: 'Inside.', path: [...records, ...path.slice(2)] }]);
  }
});

test('an error of one record is not that of another record in its request, and one without a path is of all', async () => {
  await using gateway = await startGatewayOverService({}, { snapshot: ROWS });
  const records = [1, 2].map((id) => `{ __typename: "Row", id: "${id}" }`);
  const query = `{ _entities(representations: [${records.join()}]) { ... on Row { size } } }`;
  const data = { _rsRecord0: null, _rsRecord1: null };
  const answered = async (errors: object[]) => {
    gateway.service.answer(json({ data, errors }));
    const { errors: reported } = await gateway.ask(query);
    return reported?.map(({ message, path }) => [message, path?.join('.')]);
  };
  expect(await answered([{ message: 'Closed', path: ['_rsRecord1'] }])).toEqual([
    ['Closed', '_entities.1'],
  ]);
  expect(await answered([{ message: 'Closed' }])).toEqual([
    ['Closed', '_entities.0'],
    ['Closed', '_entities.1'],
  ]);
});

test.each<[string, Reply, query: string, expected: object[]]>([
  [
    'above its parent is that of the list',
    altered((content) => {
      const [key] = Object.keys(content.data);
      Object.assign(content, { data: { [key!]: null }, errors: [{ message: 'No.', path: [key] }] });
    }),
    '{ vacancy(id: 4) { id allCandidates { id } } }',
    [{ message: 'No.', path: ['vacancy', 'allCandidates'] }],
  ],
  [
    'of a record has the path of the record and its field',
    honest,
    '{ vacancy(id: 2) { allCandidates(limit: 20) { score } } }',
    [
      { message: 'No score for 21.', path: ['vacancy', 'allCandidates', 6, 'score'] },
      { message: 'No score for 28.', path: ['vacancy', 'allCandidates', 13, 'score'] },
    ],
  ],
  [
    'of a record is at the place that selects the field',
    honest,
    '{ vacancy(id: 2) { candidatesConnection(first: 7) { nodes { id } edges { node { score } } } } }',
    [{ path: ['vacancy', 'candidatesConnection', 'edges', 6, 'node', 'score'] }],
  ],
])('an error of a nested list: one %s', async (_, reply, query, expected) => {
  await using gateway = await startOverFullService();
  gateway.service.answer(honest, reply);
  expect((await gateway.ask(query)).errors).toMatchObject(expected);
});

test.each([
  ['no plugin', []],
  ['a plugin that sees the result', [everyHook()]],
])('long integers of records keep their digits, ids too, with %s', async (_, plugins) => {
  await using gateway = await startGatewayOverService({}, { snapshot: ROWS, plugins });
  const [row, other] = ['9007199254740993', '9007199254740995'].map(
    (id) => `{"id":${id},"size":-9007199254740993,"many":[1,9007199254740993]}`,
  );
  gateway.service.answer((response, received) => {
    const isNext = received.body.includes('"next"');
    const rows = `{"items":[${isNext ? other : row}],"pageInfo":{"hasNextPage":${!isNext},"endCursor":"next"}}`;
    return text(`{"data":{"rows":${rows},"_rsRecord0":${row}}}`)(response);
  });
  const RECORD = '{ id size many }';
  for (const [query, records] of [
    [`{ rows { items ${RECORD} } }`, row],
    [`{ __typename rows { items ${RECORD} } __type(name: "Row") { name } }`, row],
    [`{ allRows ${RECORD} }`, `${row},${other}`],
    [`{ allRows @stream(initialCount: 1) ${RECORD} }`, other],
    [`{ rowsConnection(first: 60) { nodes ${RECORD} } }`, `${row},${other}`],
    [
      `{ _entities(representations: [{ __typename: "Row", id: "1" }]) { ... on Row ${RECORD} } }`,
      row,
    ],
  ] as const) {
    const accept = 'multipart/mixed, application/json';
    const response = await gateway.fetch('/graphql', post({ query }, { accept }));
    expect(await response.text(), query).toContain(`${records}]`);
  }
});
