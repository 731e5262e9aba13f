import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { randomRuns } from '../support/random/random-runs.ts';

/** How the list of a service is made. */
interface Habits {
  readonly cursor: string;
  readonly first: 'Int' | 'Int!' | 'Int! = 20';
  readonly after: 'String' | 'String! = ""';
  /** Names of filters, of which some are names of the gateway's own arguments. */
  readonly filters: readonly string[];
  /** What the records are identified by: without an id, by nothing or by the field that adapters.json names. */
  readonly identity: 'id' | 'nothing' | 'value';
  readonly items: 'objects' | 'interfaces';
  readonly isNullable: boolean;
  /** What `hasNextPage` is on the last page. */
  readonly hasNext: false | null;
  /** Whether the page has a field that counts all records, which adapters.json names. */
  readonly isCounted: boolean;
  readonly cap: number;
  readonly records: number;
  readonly isNested: boolean;
  /** What the page, and the fields that return one object, are behind. */
  readonly page: Behind;
  readonly byId: Behind;
  /** Whether the result of a record may also be a public form of it. */
  readonly hasPublicForm: boolean;
}

type Behind = 'nothing' | 'union' | 'interface';

const BEHIND: fc.Arbitrary<Behind> = fc.constantFrom('nothing', 'union', 'interface');

const HABITS: fc.Arbitrary<Habits> = fc.record({
  cursor: fc.constantFrom('after', 'afterCursor', 'cursor', 'pageCursor', 'startAfter'),
  first: fc.constantFrom('Int', 'Int!', 'Int! = 20'),
  after: fc.constantFrom('String', 'String! = ""'),
  filters: fc.subarray(['limit', 'after', 'last', 'before', 'beforeCursor', 'named']),
  identity: fc.constantFrom('id', 'nothing', 'value'),
  items: fc.constantFrom('objects', 'interfaces'),
  isNullable: fc.boolean(),
  hasNext: fc.constantFrom(false, null),
  isCounted: fc.boolean(),
  cap: fc.constantFrom(7, 12, 50, 200),
  records: fc.nat(130),
  isNested: fc.boolean(),
  page: BEHIND,
  byId: BEHIND,
  hasPublicForm: fc.boolean(),
});

/** Filters have the names of all arguments of the gateway, and one is a cursor for the other direction. */
const CLASHING: Habits = {
  cursor: 'pageCursor',
  first: 'Int!',
  after: 'String',
  filters: ['limit', 'after', 'last', 'before', 'beforeCursor'],
  identity: 'id',
  items: 'objects',
  isNullable: false,
  hasNext: false,
  isCounted: false,
  cap: 12,
  records: 30,
  isNested: false,
  page: 'nothing',
  byId: 'nothing',
  hasPublicForm: false,
};

test('lists with random habits are derived, and give what the service has', async () => {
  await fc.assert(
    fc.asyncProperty(HABITS, fc.nat(), async (habits, seed) => {
      const { records, identity, isNested } = habits;
      await using world = await startWorld(habits);
      const all = Array.from({ length: records }, (_, index) => `v${index}`);
      const [open, close] = !isNested
        ? ['', '']
        : habits.byId === 'nothing'
          ? ['box: box(id: 1) {', '}']
          : ['box: box(id: 1) { ... on Box {', '} }'];
      const ask = async (field: string, variables: Record<string, unknown> = {}) => {
        const head = field.includes('$after') ? 'query ($after: String)' : '';
        const query = `${head} { ${open} ${field} ${close} }`;
        const { data, errors } = await world.ask<Record<string, Part> & { box: Part }>(
          query,
          variables,
        );
        expect(errors, query).toBeUndefined();
        return (isNested ? data.box : data) as unknown as Part;
      };

      for (let walk = 0; walk < 2; walk += 1) {
        const { all: drained } = await ask('all: allRows { value }');
        expect(drained!.map(({ value }) => value)).toEqual(all);
      }
      if (identity === 'nothing') {
        const { errors } = await world.ask('{ rowsConnection { totalCount } }');
        expect(errors?.[0]?.message).toMatch(/Cannot query field "rowsConnection"/);
        return;
      }
      const { page } = await ask('page: rowsConnection { totalCount }');
      expect(page!.totalCount).toBe(records);
      const size = 1 + (seed % 60);
      const behind = filtersOf(habits).includes('after') ? 'connectionAfter' : 'after';
      const paged: string[] = [];
      for (let after: string | null = null; ;) {
        const { page: next }: Part = await ask(
          `page: rowsConnection(first: ${size}, ${behind}: $after) { edges { cursor node { value } } pageInfo { hasNextPage } }`,
          { after },
        );
        paged.push(...next!.edges.map(({ node }) => node.value));
        if (!next!.pageInfo.hasNextPage) break;
        after = next!.edges.at(-1)!.cursor;
      }
      expect(paged).toEqual(all);
      const { page: first } = await ask('page: rowsConnection(first: 1) { edges { cursor } }');
      for (const { cursor } of first!.edges) {
        const drainAfter = filtersOf(habits).includes('after') ? 'drainAfter' : 'after';
        const field = `all: allRows(${drainAfter}: $after) { value }`;
        const { all: rest } = await ask(field, { after: cursor });
        expect(rest!.map(({ value }) => value)).toEqual(all.slice(1));
      }
      const last = habits.filters.includes('last') ? 'connectionLast' : 'last';
      const { page: end } = await ask(
        `page: rowsConnection(${last}: 3) { edges { cursor node { value } } }`,
      );
      expect(end!.edges.map(({ node }) => node.value)).toEqual(all.slice(-3));
      if (identity === 'id') await findById(world, habits);
      if (habits.page === 'nothing') return;
      const { message, extensions } = REFUSAL;
      for (const from of [0, 1]) {
        world.refusePages(from);
        const { data, errors } = await world.ask<Record<string, unknown>>(
          `{ ${open} all: allRows { value } ${close} }`,
        );
        if (from >= records || (from > 0 && records <= habits.cap && records <= 50)) continue;
        expect(isNested ? data['box'] : data).toEqual({ all: null });
        const { result, code } = extensions;
        const interrupted = { code: 'DRAIN_INTERRUPTED', reason: code, result };
        expect(errors).toMatchObject([
          {
            message: expect.stringContaining(message),
            path: isNested ? ['box', 'all'] : ['all'],
            extensions: from === 0 ? extensions : interrupted,
          },
        ]);
      }
    }),
    {
      numRuns: randomRuns(40),
      timeout: 60_000,
      interruptAfterTimeLimit: 90_000,
      examples: [[CLASHING, 4]],
    },
  );
}, 120_000);

/** Records, missing ones, public forms and refused ones, each as a router asks for them. */
async function findById(world: World, { records, byId, items }: Habits): Promise<void> {
  const type = items === 'objects' ? 'Row' : 'Even';
  const ids = [0, records + 2, PUBLIC, REFUSED];
  const { data, errors = [] } = await world.ask<{ _entities: unknown[] }>(
    `query ($ids: [_Any!]!) { _entities(representations: $ids) { ... on ${type} { id value } } }`,
    { ids: ids.map((id) => ({ __typename: type, id })) },
  );
  expect(data._entities).toEqual([records > 0 ? { id: 0, value: 'v0' } : null, null, null, null]);
  expect(errors).toMatchObject(byId === 'nothing' ? [] : [{ ...REFUSAL, path: ['_entities', 3] }]);
}

const REFUSAL = {
  message: 'Not for you.',
  extensions: {
    code: 'FORBIDDEN',
    result: { __typename: 'RowError', code: 'FORBIDDEN', message: 'Not for you.' },
  },
};
const PUBLIC = 1_000_001;
const REFUSED = 1_000_003;

interface Part {
  readonly all?: readonly { readonly value: string }[];
  readonly page?: {
    readonly totalCount: number;
    readonly edges: readonly { readonly cursor: string; readonly node: { value: string } }[];
    readonly pageInfo: { readonly hasNextPage: boolean };
  };
}

interface World extends GatewayOverService {
  /** From now on, the service returns an error in place of each page that begins there or later. */
  refusePages(from: number): void;
}

async function startWorld(habits: Habits): Promise<World> {
  const { cursor, cap, isCounted, identity, isNested } = habits;
  const sdl = sdlOf(habits);
  const rows = Array.from({ length: habits.records }, (_, index) => ({
    __typename: typeAt(index, habits),
    id: index,
    value: `v${index}`,
  }));
  const page = (args: PageArgs & Record<string, unknown>) => {
    const after = args[cursor] as string | null | undefined;
    const { items, pageInfo } = pageOf(
      rows,
      { first: args.first ?? null, after: after ?? null },
      cap,
    );
    // Some services have null on the last page.
    const hasNextPage = pageInfo.hasNextPage || habits.hasNext;
    return {
      __typename: 'RowPage',
      items,
      pageInfo: { ...pageInfo, hasNextPage },
      count: rows.length,
    };
  };
  let refusedFrom = Infinity;
  const list = (_: unknown, args: PageArgs & Record<string, unknown>) =>
    Number(args[cursor] ?? 0) >= refusedFrom ? errorOf('FORBIDDEN') : page(args);
  const row = (_: unknown, { id }: { id: number }) => rows[id] ?? missing(id, habits) ?? null;
  const resolvers = {
    Query: {
      ...(isNested ? { box: () => ({ __typename: 'Box', id: 1 }) } : { rows: list }),
      ...(isFoundById(habits) && { row }),
    },
    ...(isNested && { Box: { rows: list } }),
  };
  const key = isNested ? 'Box.rows' : 'Query.rows';
  const overrides = {
    fields: {
      [key]: {
        ...(isCounted && { count: 'count' }),
        ...(identity === 'value' && { identity: 'value' }),
      },
    },
  };
  const started = await startGatewayOverService(
    { schema: makeExecutableSchema(sdl, resolvers) },
    { snapshot: sdl, overrides },
  );
  return { ...started, refusePages: (from) => void (refusedFrom = from) };
}

function typeAt(index: number, { items }: Habits): string {
  if (items === 'objects') return 'Row';
  return index % 2 === 0 ? 'Even' : 'Odd';
}

/** Otherwise records can only be looked up in the list. */
function isFoundById({ isNested, byId }: Habits): boolean {
  return isNested || byId !== 'nothing';
}

function errorOf(code: string) {
  return { __typename: 'RowError', code, message: 'Not for you.' };
}

/** What the service returns for an id that is none of a record's. */
function missing(id: number, { byId, hasPublicForm }: Habits): object | undefined {
  if (byId === 'nothing') return undefined;
  if (id === PUBLIC && hasPublicForm) return { __typename: 'RowPublic', id, value: 'public' };
  return errorOf(id === REFUSED ? 'FORBIDDEN' : 'NOT_FOUND');
}

function filtersOf({ filters, cursor }: Habits): readonly string[] {
  return filters.filter((name) => name !== cursor);
}

/** Their fields of one name have several types. */
const ERRORS = ['RowError', 'RowLockedError'];

function sdlOf(habits: Habits): string {
  const { cursor, items, isCounted, identity } = habits;
  const args = [
    `first: ${habits.first}`,
    `${cursor}: ${cursor === 'after' ? habits.after : 'String'}`,
    ...filtersOf(habits).map((name) => `${name}: ${name === 'beforeCursor' ? 'String' : 'Int'}`),
  ];
  const results = [
    resultOf('RowsResult', habits.page, ['RowPage', ...ERRORS]),
    resultOf('BoxResult', habits.byId, ['Box', ...ERRORS]),
    resultOf('RowResult', habits.byId, [
      typeAt(0, habits),
      ...ERRORS,
      ...(habits.hasPublicForm ? ['RowPublic'] : []),
    ]),
  ];
  const [rows, box, row] = results.map(({ type }) => type);
  const list = `rows(${args.join(', ')}): ${rows}!`;
  const fields = `${identity === 'id' ? 'id: Int!' : ''} value: String!`;
  /** Defines an object type, with what it has from the results that are interfaces. */
  const object = (name: string, ownFields: string, ...above: readonly string[]) => {
    const interfaces = [
      ...above,
      ...results.flatMap(({ type, isInterface, members }) =>
        isInterface && members.includes(name) ? [type] : [],
      ),
    ];
    const also = interfaces.length > above.length ? 'took: Int' : '';
    const head = interfaces.length > 0 ? `implements ${interfaces.join(' & ')}` : '';
    return `type ${name} ${head} { ${ownFields} ${also} }`;
  };
  return `
    type Query {
      ${habits.isNested ? `box(id: Int!): ${box}` : list}
      ${isFoundById(habits) ? `row(id: Int!): ${row}` : ''}
    }
    ${results.map(({ definition }) => definition).join('\n')}
    ${habits.isNested || habits.byId === 'union' ? object('Box', `id: Int! ${list}`) : ''}
    ${
      items === 'objects'
        ? object('Row', fields)
        : `interface Row { ${fields} } ${object('Even', fields, 'Row')} ${object('Odd', fields, 'Row')}`
    }
    ${object('RowPublic', 'id: Int! value: String!')}
    ${object('RowError', 'code: String! message: String!')}
    ${object('RowLockedError', 'code: Int! message: String')}
    ${object(
      'RowPage',
      `items: [Row${habits.isNullable ? '' : '!'}]! pageInfo: PageInfo!
      ${isCounted ? 'count: Int!' : ''}`,
    )}
    type PageInfo { hasNextPage: Boolean${habits.hasNext === null ? '' : '!'} endCursor: String }`;
}

/** @param members the first of them is what the field is for */
function resultOf(name: string, behind: Behind, members: readonly [string, ...string[]]) {
  if (behind === 'nothing') {
    return { type: members[0], isInterface: false, members, definition: '' };
  }
  const isInterface = behind === 'interface';
  const definition = isInterface
    ? `interface ${name} { took: Int }`
    : `union ${name} = ${members.join(' | ')}`;
  return { type: name, isInterface, members, definition };
}
