/** Lists that are odd, below records, or without ids: what no model of paging has. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { fullSdl, fullService } from '../service/full.ts';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';
import { after, honest } from '../service/replies.ts';
import { startTeams } from '../support/gateway/teams.ts';
import { all, putTogether } from '../support/clients/multipart.ts';

type World = Awaited<ReturnType<typeof startGatewayOverService>>;
type Resolvers = Parameters<typeof makeExecutableSchema>[1];

let full: World;
beforeAll(async () => {
  full = await startFull({});
});
afterAll(() => full[Symbol.asyncDispose]());

async function startFull(config: { drainMaxItems?: number }): Promise<World> {
  const { schema } = fullService();
  const gateway = await startGatewayOverService({ schema }, { snapshot: fullSdl, config });
  await gateway.ask('{ viewer { __typename } }');
  return gateway;
}

const PAGE_INFO = 'type PageInfo { hasNextPage: Boolean! endCursor: String }';

function over(sdl: string, resolvers: Resolvers, overrides?: object): Promise<World> {
  const snapshot = `${sdl} ${PAGE_INFO}`;
  const schema = makeExecutableSchema(snapshot, resolvers);
  return startGatewayOverService({ schema }, { snapshot, overrides });
}

const rowsField = (name: string) => `${name}(first: Int, after: String): RowPage`;

test('the window in front of the first record is empty, also if the fields of the record fail', async () => {
  const rows = Array.from({ length: 9 }, (_, id) => ({ id }));
  await using gateway = await over(
    `type Query { ${rowsField('rows')}! }
     type Row { id: ID! broken: Int! } type RowPage { items: [Row!]! pageInfo: PageInfo! }`,
    {
      Query: { rows: (_: unknown, args: PageArgs) => pageOf(rows, args) },
      Row: {
        broken: () => {
          throw new Error('Broken.');
        },
      },
    },
  );
  const { data } = await gateway.ask<{ c: { edges: { cursor: string }[] } }>(
    '{ c: rowsConnection { edges { cursor } } }',
  );
  const query =
    'query ($before: String) { rowsConnection(last: 4, before: $before) { nodes { broken } } }';
  const before = (at: number) => ({ before: data.c.edges[at]!.cursor });
  expect(await gateway.ask(query, before(0))).toEqual({ data: { rowsConnection: { nodes: [] } } });
  expect((await gateway.ask(query, before(1))).errors).toMatchObject([{ message: 'Broken.' }]);
});

const emptyFirst = (_: unknown, args: PageArgs) =>
  args.after
    ? { items: [{ id: 1 }], pageInfo: { hasNextPage: false, endCursor: 'b' } }
    : { items: [], pageInfo: { hasNextPage: true, endCursor: 'a' } };

test('a list that is null gives null, one without items no records, and an empty first page is skipped', async () => {
  await using gateway = await over(
    `type Query { ${rowsField('gone')} ${rowsField('empty')} ${rowsField('late')} }
     type Row { id: ID! } type RowPage { items: [Row!] pageInfo: PageInfo! }`,
    {
      Query: {
        gone: () => null,
        empty: () => ({ items: null, pageInfo: { hasNextPage: false } }),
        late: emptyFirst,
      },
    },
  );
  const fields = ['Gone', 'Empty', 'Late'].map(
    (name) => `all${name} { id } ${name.toLowerCase()}Connection { nodes { id } }`,
  );
  expect(await gateway.ask(`{ ${fields.join(' ')} }`)).toEqual({
    data: {
      allGone: null,
      goneConnection: null,
      allEmpty: [],
      emptyConnection: { nodes: [] },
      allLate: [{ id: '1' }],
      lateConnection: { nodes: [{ id: '1' }] },
    },
  });
});

test.each([
  '{ allCandidates { _rsId: name } }',
  '{ allCandidates { __typename: name } }',
  'query ($_rs_first: Int) { candidatesConnection(first: $_rs_first) { nodes { id } } }',
])('names that the gateway uses itself are refused: %s', async (query) => {
  const before = full.service.stats.requests.graphql;
  expect((await full.ask(query)).errors).toMatchObject([
    { message: expect.stringContaining('is reserved'), extensions: { code: 'BAD_USER_INPUT' } },
  ]);
  expect(full.service.stats.requests.graphql).toBe(before);
});

test('names that routers use are accepted', async () => {
  const query = 'query ($__n: Int) { __all: allActiveCandidates(limit: $__n) { __id: id } }';
  expect(await full.ask(query, { __n: 1 })).toEqual({ data: { __all: [{ __id: 1 }] } });
});

/** A call that gives a cursor, one that uses it, and whether it is accepted. */
test.each([
  ['activeCandidatesConnection', 'activeCandidatesConnection(after: $after)', true],
  ['activeCandidatesConnection', 'allActiveCandidates(after: $after, limit: 1)', true],
  ['activeCandidatesConnection', 'namedConnection(after: $after)', false],
  ['activeCandidatesConnection', 'allNamed(after: $after)', false],
  ['openingsConnection(open: true)', 'openingsConnection(after: $after, open: true)', true],
  ['openingsConnection(open: true)', 'openingsConnection(after: $after, open: false)', false],
  ['openingsConnection(open: true)', 'openingsConnection(after: $after)', false],
  ['candidatesConnection', 'candidatesConnection(after: $after, stage: NEW)', true],
  ['candidatesConnection', 'candidatesConnection(after: $after, stage: OFFER)', false],
  [
    'candidatesConnection(filter: { stage: [OFFER], minScore: 1 })',
    'candidatesConnection(after: $after, filter: { minScore: 1, stage: [OFFER] })',
    true,
  ],
  [
    'candidatesConnection(filter: { stage: [OFFER], minScore: 1 })',
    'candidatesConnection(after: $after, filter: { minScore: 1, stage: [NEW] })',
    false,
  ],
])(
  'a cursor belongs to one list with its filters: of %s, in %s',
  async (from, call, isAccepted) => {
    const { data } = await full.ask<{ c: { edges: { cursor: string }[] } }>(
      `{ c: ${from} { edges { cursor } } }`,
    );
    const { cursor } = data.c.edges[0]!;
    const query = `query ($after: String) { c: ${call} { __typename } }`;
    const { errors } = await full.ask(query, { after: cursor });
    expect(errors?.map(({ extensions }) => extensions?.['code'])).toEqual(
      isAccepted ? undefined : ['CURSOR_INVALID'],
    );
  },
);

test.each([
  ['a field of the service', '{ me { id } }', 1],
  [
    'fields of the service beside a derived one',
    '{ me { id } viewer { company { id } } allActiveCandidates(limit: 1) { id } }',
    2,
  ],
  [
    'two aliases of one page',
    '{ a: openingsConnection(first: 5) { nodes { id } } b: openingsConnection(first: 5) { nodes { id } } }',
    1,
  ],
  [
    'the nested lists of many parents',
    '{ openings(first: 7) { items { allCandidates(limit: 1) { id } } } }',
    2,
  ],
  // Each page through the parent.
  ['a nested list of 32 records', '{ vacancy(id: 7) { allCandidates { id } } }', 1 + 11],
  ['introspection', '{ __schema { types { name } } __typename }', 0],
])('the service gets as few requests as possible for %s', async (_, query, requests) => {
  const before = full.service.stats.requests.graphql;
  expect((await full.ask(query)).errors).toBeUndefined();
  expect(full.service.stats.requests.graphql - before).toBe(requests);
});

test('a cursor of a nested list is valid only for the list of its parent, however the parent is found', async () => {
  const { data } = await full.ask<{ vacancy: { list: { edges: { cursor: string }[] } } }>(
    '{ vacancy(id: 7) { list: candidatesConnection(first: 2) { edges { cursor } } } }',
  );
  const { data: here, errors } = await full.ask(
    `query ($after: String) {
      theVacancy(id: 7) { candidatesConnection(first: 2, after: $after) { nodes { id } pageInfo { hasPreviousPage } } }
      vacancies(after: "5") { items { id allCandidates(after: $after, limit: 1) { id } } }
    }`,
    { after: data.vacancy.list.edges[0]!.cursor },
  );
  expect(here).toEqual({
    theVacancy: {
      candidatesConnection: {
        nodes: [{ id: 2 }, { id: 3 }],
        pageInfo: { hasPreviousPage: true },
      },
    },
    vacancies: {
      items: [6, 7, 8].map((id) => ({ id, allCandidates: id === 7 ? [{ id: 2 }] : null })),
    },
  });
  expect(errors!.map(({ extensions }) => extensions?.['code'])).toEqual([
    'CURSOR_INVALID',
    'CURSOR_INVALID',
  ]);
});

test('DRAIN_MAX_ITEMS counts all drains of an operation, nested ones too', async () => {
  await using small = await startFull({ drainMaxItems: 20 });
  const { errors } = await small.ask('{ allVacancies { allCandidates { id } } }');
  expect(errors?.[0]).toMatchObject({
    path: ['allVacancies', expect.any(Number), 'allCandidates'],
    extensions: { code: 'DRAIN_LIMIT_EXCEEDED', max: 20 },
  });
  const enough = await small.ask('{ allVacancies { allCandidates(limit: 1) { id } } }');
  expect(enough.errors).toBeUndefined();
});

const GONE = expect.stringContaining('no longer has this Person');

test.each<[string, object | null, message: string, code: string]>([
  ['that no longer exists', null, GONE, 'UPSTREAM_BAD_RESPONSE'],
  ['that is not found any more', { code: 'NOT_FOUND' }, GONE, 'UPSTREAM_BAD_RESPONSE'],
  ['that is not shown', { code: 'FORBIDDEN', message: 'Not yours.' }, 'Not yours.', 'FORBIDDEN'],
])('a parent %s when its list is requested is reported', async (_, found, message, code) => {
  await using gateway = await over(
    `type Query { persons(first: Int, after: String): PersonPage! person(id: ID!): PersonResult }
     type Person { id: ID! notes(first: Int, after: String): NotePage! }
     union PersonResult = Person | PersonError type PersonError { message: String code: String }
     type PersonPage { items: [Person!]! pageInfo: PageInfo! }
     type Note { text: String } type NotePage { items: [Note!]! pageInfo: PageInfo! }`,
    {
      Query: {
        persons: () => ({ items: [{ id: 'p' }], pageInfo: { hasNextPage: false } }),
        person: () => found && { __typename: 'PersonError', ...found },
      },
    },
  );
  const { data, errors } = await gateway.ask('{ allPersons { id allNotes { text } } }');
  expect(data).toEqual({ allPersons: [{ id: 'p', allNotes: null }] });
  const path = ['allPersons', 0, 'allNotes'];
  expect(errors).toMatchObject([{ message, path, extensions: { code } }]);
});

test.each(['allMembers(limit: 20) { id }', 'membersConnection(first: 20) { nodes { id } }'])(
  'further pages of %s below many parents leave capacity for other callers',
  async (list) => {
    await using gateway = await startTeams({ teams: 40, members: 8 });
    const { service } = gateway;
    const gate = Promise.withResolvers<void>();
    // The parents, and the first pages of all their lists.
    service.answer(honest, honest, after(gate.promise, honest));
    const whole = gateway.ask<{ teams: { items: object[] } }>(`{ teams { items { ${list} } } }`);
    await service.arrived(2 + 8);
    const other = gateway.ask('{ team(id: "1") { number } }');
    await service.arrived(2 + 8 + 1);
    expect(service.received[10]!.body).toContain('number');
    gate.resolve();
    expect((await other).data).toEqual({ team: { number: 1 } });
    expect((await whole).data.teams.items).toHaveLength(40);
  },
);

const CODES = ['a', 'A', '', 'a,', 'é"\\', '1', '01', null, null] as const;

test.each(['Rows', 'Odd'])(
  'records of all%s whose identities differ are never treated as one, and a record without one keeps its position',
  async (name) => {
    const rows = Array.from({ length: 130 }, (_, index) => ({
      __typename: name === 'Odd' && index % 2 === 1 ? 'Other' : 'Row',
      code: index in CODES ? CODES[index] : `c${index}`,
      text: `t${index}`,
    }));
    const page = (_: unknown, args: PageArgs) => pageOf(rows, args);
    const fields = 'code: String text: String';
    await using world = await over(
      `type Query { ${rowsField('rows')} odd(first: Int, after: String): OddPage }
       interface Odd { ${fields} } type Row implements Odd { ${fields} } type Other implements Odd { ${fields} }
       type RowPage { items: [Row!]! pageInfo: PageInfo! }
       type OddPage { items: [Odd]! pageInfo: PageInfo! }`,
      { Query: { rows: page, odd: page } },
      { fields: { 'Query.rows': { identity: 'code' }, 'Query.odd': { identity: 'code' } } },
    );
    const list = rows.map(({ text }) => ({ text }));
    for (let walk = 0; walk < 2; walk += 1)
      expect(await world.ask(`{ list: all${name} { text } }`)).toEqual({ data: { list } });
    const connection = `${name.toLowerCase()}Connection`;
    const { data } = await world.ask<{ list: { edges: { cursor: string }[] } }>(
      `{ list: ${connection}(first: 130) { edges { cursor } } }`,
    );
    const cursors = data.list.edges.map(({ cursor }) => cursor);
    expect(new Set(cursors).size).toBe(130);
    for (const at of [0, 3, 5, 7, 8, 128]) {
      const query = `query ($after: String) { list: ${connection}(first: 1, after: $after) { nodes { text } } }`;
      const answer = await world.ask(query, { after: cursors[at] });
      expect(answer).toEqual({ data: { list: { nodes: [list[at + 1]] } } });
    }
  },
);

// A page of the service has 30 records.
test.each([5, 6, 7, 50])(
  'a streamed list that begins with %i records has the errors of the list, each beside its record',
  async (count) => {
    const query = '{ all: allCandidates { id s: score } }';
    const stream = `@stream(initialCount: ${count})`;
    const parts = await all(full, query.replace('allCandidates', `$& ${stream}`));
    const pieces = parts.flatMap(({ data, errors = [], incremental = [] }) =>
      data
        ? [{ from: 0, items: data['all'], errors }]
        : incremental.map(({ path, items, errors: later = [] }) => ({
            from: Number(path.at(-1)),
            items: items as unknown,
            errors: later,
          })),
    );
    for (const { from, items, errors } of pieces) {
      const places = errors.map(({ path }) => Number(path![1]) - from);
      const ends = [0, (items as unknown[]).length - 1];
      expect([...places, ...ends].toSorted((a, b) => a - b)).toEqual([0, ...places, ends[1]]);
    }
    const whole = await full.ask(query);
    expect(whole.errors!.length).toBeGreaterThan(4);
    expect({ data: putTogether(parts), errors: pieces.flatMap(({ errors }) => errors) }).toEqual(
      whole,
    );
  },
);
