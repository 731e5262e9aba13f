/** Lists that are odd, below records, or without ids: what no model of paging has. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverService, startOverFullService } from '../support/gateway/over-service.ts';
import { makeExecutableSchema, range, type PageArgs } from '../service/lists.ts';
import { after, honest, json } from '../service/replies.ts';
import { startTeams } from '../support/gateway/teams.ts';
import { all, putTogether } from '../support/clients/multipart.ts';

type World = Awaited<ReturnType<typeof startGatewayOverService>>;
type Resolvers = Parameters<typeof makeExecutableSchema>[1];

let full: World;
beforeAll(async () => {
  full = await startFull();
  await full.ask('{ viewer { __typename } }');
});
afterAll(() => full[Symbol.asyncDispose]());

const startFull = (drainMaxItems?: number) =>
  startOverFullService({ config: drainMaxItems === undefined ? {} : { drainMaxItems } });

function fail(message: string): never {
  throw new Error(message);
}

function over(sdl: string, resolvers: Resolvers): Promise<World> {
  const paged = sdl.replaceAll('%', 'first: Int, after: String');
  const snapshot = `${paged} type PageInfo { hasNextPage: Boolean! endCursor: String }`;
  const schema = makeExecutableSchema(snapshot, resolvers);
  return startGatewayOverService({ schema }, { snapshot });
}

test('a page that is null is an error, one without items no records, and an empty first page is skipped', async () => {
  await using gateway = await over(
    `type Query { gone(%): RowPage broken(%): RowPage empty(%): RowPage late(%): RowPage }
     type Row { id: ID! } type RowPage { items: [Row!] pageInfo: PageInfo! }`,
    {
      Query: {
        gone: () => null,
        broken: () => ({ items: () => fail('Broken.'), pageInfo: { hasNextPage: false } }),
        empty: () => ({ items: null, pageInfo: { hasNextPage: false } }),
        late: (_: unknown, { after: cursor }: PageArgs) => ({
          items: cursor ? [{ id: 1 }] : [],
          pageInfo: { hasNextPage: !cursor, endCursor: cursor ? 'b' : 'a' },
        }),
      },
    },
  );
  const fields = ['Gone', 'Broken', 'Empty', 'Late'].map(
    (name) => `all${name} { id } ${name.toLowerCase()}Connection { nodes { id } }`,
  );
  expect(await gateway.ask(`{ ${fields.join(' ')} }`)).toEqual({
    data: {
      allGone: null,
      goneConnection: null,
      allBroken: null,
      brokenConnection: null,
      allEmpty: [],
      emptyConnection: { nodes: [] },
      allLate: [{ id: '1' }],
      lateConnection: { nodes: [{ id: '1' }] },
    },
    errors: [
      ...['allGone', 'goneConnection'].map((field) =>
        expect.objectContaining({ path: [field], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }),
      ),
      ...['allBroken', 'brokenConnection'].map((field) => ({ message: 'Broken.', path: [field] })),
    ],
  });
});

test('the error of a page without records is reported', async () => {
  const persons = { items: [], pageInfo: { hasNextPage: false, endCursor: null } };
  await using gateway = await startGatewayOverService();
  const message = 'Hidden.';
  // Places in the gateway's own request mean nothing to callers.
  const errors = [{ message, locations: [{ line: 1, column: 1 }] }];
  gateway.service.answer(json({ data: { persons }, errors }));
  const fields = ['allPersons', 'personsConnection'];
  expect(await gateway.ask('{ allPersons { id } personsConnection { nodes { id } } }')).toEqual({
    data: Object.fromEntries(fields.map((field) => [field, null])),
    errors: fields.map((field) => ({ message, path: [field] })),
  });
});

test('a drain whose later page is an error behind a result is interrupted, with what the error says', async () => {
  const refused = { __typename: 'RowError', code: 'FORBIDDEN', message: 'Not for you.' };
  await using gateway = await over(
    `type Query { rows(%): Rows! } union Rows = RowPage | RowError
     type Row { id: ID! } type RowPage { items: [Row!]! pageInfo: PageInfo! }
     type RowError { code: String! message: String! }`,
    {
      Query: {
        rows: (_: unknown, { after: cursor }: PageArgs) =>
          cursor
            ? refused
            : {
                __typename: 'RowPage',
                items: [{ id: 1 }],
                pageInfo: { hasNextPage: true, endCursor: 'a' },
              },
      },
    },
  );
  const { data, errors } = await gateway.ask('{ allRows { id } }');
  expect(data).toEqual({ allRows: null });
  const extensions = { code: 'DRAIN_INTERRUPTED', reason: null, result: refused };
  const message = expect.stringContaining(refused.message);
  expect(errors).toMatchObject([{ message, path: ['allRows'], extensions }]);
});

const OFFERED = 'candidatesConnection(filter: { stage: [OFFER], minScore: 1 })';

/** A call that gives a cursor, one that uses it, and whether it is accepted. */
test.each([
  ['namedConnection', 'namedConnection(after: $after)', true],
  ['namedConnection', 'allNamed(after: $after, limit: 1)', true],
  ['activeCandidatesConnection', 'namedConnection(after: $after)', false],
  ['activeCandidatesConnection', 'allNamed(after: $after)', false],
  ['openingsConnection(open: true)', 'openingsConnection(after: $after, open: true)', true],
  ['openingsConnection(open: true)', 'openingsConnection(after: $after, open: false)', false],
  ['openingsConnection(open: true)', 'openingsConnection(after: $after)', false],
  ['candidatesConnection', 'candidatesConnection(after: $after, stage: NEW)', true],
  [OFFERED, 'candidatesConnection(after: $after, filter: { minScore: 1, stage: [OFFER] })', true],
  [OFFERED, 'candidatesConnection(after: $after, filter: { minScore: 1, stage: [NEW] })', false],
])(
  'a cursor belongs to one list with its filters: of %s, in %s',
  async (from, call, isAccepted) => {
    const { data } = await full.ask<Connected>(`{ c: ${from} { edges { cursor } } }`);
    const { cursor } = data.c.edges[0]!;
    const query = `query ($after: String) { c: ${call} { __typename } }`;
    const { errors = [] } = await full.ask(query, { after: cursor });
    const codes = errors.map(({ extensions }) => extensions?.['code']);
    expect(codes).toEqual(isAccepted ? [] : ['CURSOR_INVALID']);
  },
);

interface Connected {
  readonly c: { readonly edges: readonly { readonly cursor: string; readonly node?: unknown }[] };
}

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
  ['a nested list of 32 records', '{ vacancy(id: 2) { allCandidates { id } } }', 1 + 11],
  [
    'two fields with the same page of a nested list',
    '{ vacancy(id: 2) { allCandidates(limit: 3) { id } candidatesConnection(first: 3) { nodes { id } } } }',
    2,
  ],
  ['introspection', '{ __schema { types { name } } __typename }', 0],
])('the service gets as few requests as possible for %s', async (_, query, requests) => {
  const before = full.service.received.length;
  expect((await full.ask(query)).errors).toBeUndefined();
  expect(full.service.received.length - before).toBe(requests);
});

test('a cursor of a nested list is valid only for the list of its parent, however the parent is found', async () => {
  const { data } = await full.ask<{ vacancy: Connected }>(
    '{ vacancy(id: 2) { c: candidatesConnection(first: 3) { edges { cursor node { id } } } } }',
  );
  const [first, second, third] = data.vacancy.c.edges;
  const { data: here, errors = [] } = await full.ask(
    `query ($after: String) {
      theVacancy(id: 2) { candidatesConnection(first: 2, after: $after) { nodes { id } } }
      vacancies(first: 3) { items { id allCandidates(after: $after, limit: 1) { id } } }
    }`,
    { after: first!.cursor },
  );
  expect(here).toEqual({
    theVacancy: { candidatesConnection: { nodes: [second!.node, third!.node] } },
    vacancies: {
      items: [1, 2, 3].map((id) => ({ id, allCandidates: id === 2 ? [second!.node] : null })),
    },
  });
  const placed = errors.map(({ extensions, path }) => [extensions?.['code'], ...path!]);
  expect(placed).toEqual(
    [0, 2].map((at) => ['CURSOR_INVALID', 'vacancies', 'items', at, 'allCandidates']),
  );
});

test('DRAIN_MAX_ITEMS counts all drains of an operation, nested ones too', async () => {
  await using small = await startFull(20);
  const { errors } = await small.ask('{ allVacancies { allCandidates { id } } }');
  expect(errors?.[0]).toMatchObject({
    path: ['allVacancies', expect.any(Number), 'allCandidates'],
    extensions: { code: 'DRAIN_LIMIT_EXCEEDED', max: 20 },
  });
  const enough = await small.ask('{ allVacancies { allCandidates(limit: 1) { id } } }');
  expect(enough.errors).toBeUndefined();
});

test('each of several hundred parents in one answer gets its own list', async () => {
  type Parent = { vacancy: { candidates: { items: unknown[] }; allCandidates: unknown[] } | null };
  const page =
    'candidates(first: 50) { items { vacancy { candidates(first: 1) { items { id } } allCandidates(limit: 1) { id } } } }';
  const pages = range(8).map((at) => `page${at}: ${page}`);
  const { data, errors } = await full.ask<Record<string, { items: (Parent | null)[] }>>(
    `{ ${pages.join(' ')} }`,
  );
  expect(errors).toBeUndefined();
  const parents = Object.values(data).flatMap(({ items }) =>
    items.flatMap((each) => each?.vacancy ?? []),
  );
  expect(parents.length).toBeGreaterThan(200);
  for (const { candidates, allCandidates } of parents) {
    expect(allCandidates).toEqual(candidates.items);
  }
});

const GONE = expect.stringContaining('no longer has this Person');

test.each<[string, Record<string, string> | null, message: string, code?: string]>([
  ['that no longer exists', null, GONE, 'UPSTREAM_BAD_RESPONSE'],
  ['that is not shown', { code: 'FORBIDDEN', message: 'Not yours.' }, 'Not yours.'],
  ['that is an error without a message', { code: 'NOT_FOUND' }, 'NOT_FOUND'],
  // Its name may need a scope.
  ['that is another record', { __typename: 'Moved', name: 'Ada', message: 'Moved.' }, 'Moved.'],
])('a parent %s when its list is requested is reported', async (_, found, message, code) => {
  await using gateway = await over(
    `type Query { persons(%): PersonPage! person(id: ID!): PersonResult }
     type Person { id: ID! notes(%): NotePage! }
     type Moved { id: ID name: String message: String }
     union PersonResult = Person | PersonError | Moved type PersonError { message: String code: String }
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
  const { name: _name, ...result } = found ?? {};
  expect(errors).toMatchObject([
    { message, path, extensions: code === undefined ? { result } : { code } },
  ]);
  expect(JSON.stringify(errors)).not.toContain('Ada');
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

test('a streamed list has the errors of the list, each beside its record', async () => {
  const query = '{ all: allCandidates { id s: score } }';
  const parts = await all(full, query.replace('allCandidates', '$& @stream'));
  const pieces = parts.flatMap(({ incremental = [] }) => incremental);
  for (const { path, items, errors = [] } of pieces) {
    for (const error of errors) {
      const at = Number(error.path![1]) - Number(path.at(-1));
      expect(at in items!, `${at} of ${items!.length}`).toBe(true);
    }
  }
  const whole = await full.ask(query);
  expect(whole.errors!.length).toBeGreaterThan(4);
  expect({
    data: putTogether(parts),
    errors: pieces.flatMap(({ errors = [] }) => errors),
  }).toEqual(whole);
});
