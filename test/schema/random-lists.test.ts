import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { randomRuns } from '../support/random/random-runs.ts';

/** How the list of a service is made. */
const HABITS = fc.record({
  cursor: fc.constantFrom('after', 'afterCursor', 'cursor', 'pageCursor', 'startAfter'),
  first: fc.constantFrom('Int', 'Int!', 'Int! = 20'),
  after: fc.constantFrom('String', 'String! = ""'),
  /** Names of filters, of which some are names of the gateway's own arguments. */
  filters: fc.subarray(['limit', 'after', 'last', 'before', 'beforeCursor', 'named']),
  /** What the records are identified by: without an id, by nothing or by the field that adapters.json names. */
  identity: fc.constantFrom('id', 'nothing', 'code'),
  items: fc.constantFrom('objects', 'interfaces'),
  isNullable: fc.boolean(),
  /** What `hasNextPage` is on the last page. */
  hasNext: fc.constantFrom(false, null),
  /** Whether the page has a field that counts all records, which adapters.json names. */
  isCounted: fc.boolean(),
  cap: fc.constantFrom(7, 12, 50, 200),
  records: fc.nat(130),
  isNested: fc.boolean(),
  /** What the page is behind. */
  page: fc.constantFrom('nothing', 'union', 'interface'),
});

type Habits = typeof HABITS extends fc.Arbitrary<infer Value> ? Value : never;

const USUAL: Habits = {
  cursor: 'pageCursor',
  first: 'Int!',
  after: 'String',
  filters: [],
  identity: 'id',
  items: 'objects',
  isNullable: false,
  hasNext: false,
  isCounted: false,
  cap: 12,
  records: 30,
  isNested: false,
  page: 'nothing',
};
/** Filters have the names of all arguments of the gateway, and one is a cursor for the other direction. */
const CLASHING = { ...USUAL, filters: ['limit', 'after', 'last', 'before', 'beforeCursor'] };
const BY_CODE: Habits = { ...USUAL, identity: 'code', items: 'interfaces', records: 60 };

test('lists with random habits are derived, and give what the service has', async () => {
  await fc.assert(
    fc.asyncProperty(HABITS, fc.nat(), async (habits, seed) => {
      const { records, identity, isNested } = habits;
      await using world = await startWorld(habits);
      const all = Array.from({ length: records }, (_, index) => `v${index}`);
      const inBox = (field: string) => (isNested ? `box(id: 1) { ${field} }` : field);
      const ask = async (field: string, after?: string | null) => {
        const head = after === undefined ? '' : 'query ($after: String)';
        const { data, errors } = await world.ask<Part & { box: Part }>(
          `${head} { ${inBox(field)} }`,
          { after },
        );
        expect(errors, field).toBeUndefined();
        return isNested ? data.box : data;
      };
      const drained = async (field: string, after?: string) =>
        (await ask(`all: ${field} { value }`, after)).all.map(({ value }) => value);
      const page = async (args: string, after?: string | null) => {
        const { page: found } = await ask(`page: rowsConnection${args} ${PAGE}`, after);
        return { ...found, values: found.edges.map(({ node }) => node.value) };
      };

      expect(await drained('allRows')).toEqual(all);
      expect(await drained('allRows')).toEqual(all);
      if (identity === 'nothing') {
        const { errors } = await world.ask(`{ ${inBox('rowsConnection { totalCount }')} }`);
        expect(errors?.[0]?.message).toMatch(/Cannot query field "rowsConnection"/);
        return;
      }
      const isTaken = (name: string) => filtersOf(habits).includes(name);
      const behind = isTaken('after') ? 'connectionAfter' : 'after';
      const paged: string[] = [];
      for (let after: string | null = null; ;) {
        const next = await page(`(first: ${1 + (seed % 60)}, ${behind}: $after)`, after);
        paged.push(...next.values);
        expect(next.totalCount).toBe(records);
        if (!next.pageInfo.hasNextPage) break;
        after = next.edges.at(-1)!.cursor;
      }
      expect(paged).toEqual(all);
      const first = await page('(first: 9)');
      for (const [at, { cursor }] of first.edges.entries()) {
        const after = isTaken('after') ? 'drainAfter' : 'after';
        expect(await drained(`allRows(${after}: $after)`, cursor)).toEqual(all.slice(at + 1));
      }
      const last = isTaken('last') ? 'connectionLast' : 'last';
      expect((await page(`(${last}: 3)`)).values).toEqual(all.slice(-3));
      if (identity === 'id' && !isNested) {
        const type = typeAt(0, habits);
        const { data, errors } = await world.ask(
          `{ _entities(representations: [{ __typename: "${type}", id: 0 }, { __typename: "${type}", id: 999 }]) { ... on ${type} { value } } }`,
        );
        expect(errors).toBeUndefined();
        expect(data).toEqual({ _entities: [records > 0 ? { value: 'v0' } : null, null] });
      }
      if (habits.page === 'nothing') return;
      const { message, extensions } = REFUSAL;
      for (const from of [0, 1]) {
        world.refusePages(from);
        const { data, errors } = await world.ask<Record<string, unknown>>(
          `{ ${inBox('all: allRows { value }')} }`,
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
      examples: [
        [CLASHING, 4],
        [BY_CODE, 0],
      ],
    },
  );
}, 120_000);

const PAGE = '{ totalCount edges { cursor node { value } } pageInfo { hasNextPage } }';

const REFUSAL = {
  message: 'Not for you.',
  extensions: {
    code: 'FORBIDDEN',
    result: { __typename: 'RowError', code: 'FORBIDDEN', message: 'Not for you.' },
  },
};

interface Part {
  readonly all: readonly { readonly value: string }[];
  readonly page: {
    readonly totalCount: number;
    readonly edges: readonly { readonly cursor: string; readonly node: { value: string } }[];
    readonly pageInfo: { readonly hasNextPage: boolean };
  };
}

interface World extends GatewayOverService {
  /** From now on, the service returns an error in place of each page that begins there or later. */
  refusePages(from: number): void;
}

/** Different ones are never treated as one, and a record without one keeps its position. */
const CODES = ['a', 'A', '', 'a,', 'é"\\', '1', '01', null, null] as const;

async function startWorld(habits: Habits): Promise<World> {
  const { cursor, cap, isCounted, identity, isNested } = habits;
  const sdl = sdlOf(habits);
  const rows = Array.from({ length: habits.records }, (_, index) => ({
    __typename: typeAt(index, habits),
    id: index,
    code: index in CODES ? CODES[index] : `c${index}`,
    value: `v${index}`,
  }));
  let refusedFrom = Infinity;
  const list = (_: unknown, args: PageArgs & Record<string, unknown>) => {
    const after = args[cursor] as string | null | undefined;
    if (Number(after ?? 0) >= refusedFrom) return REFUSAL.extensions.result;
    const { pageInfo, ...page } = pageOf(
      rows,
      { first: args.first ?? null, after: after ?? null },
      cap,
    );
    // Some services have null on the last page.
    const hasNextPage = pageInfo.hasNextPage || habits.hasNext;
    return { __typename: 'RowPage', ...page, pageInfo: { ...pageInfo, hasNextPage } };
  };
  const resolvers = isNested
    ? { Query: { box: () => ({ __typename: 'Box', id: 1 }) }, Box: { rows: list } }
    : { Query: { rows: list } };
  const override = {
    ...(isCounted && { count: 'count' }),
    ...(identity === 'code' && { identity }),
  };
  const started = await startGatewayOverService(
    { schema: makeExecutableSchema(sdl, resolvers) },
    { snapshot: sdl, overrides: { fields: { [isNested ? 'Box.rows' : 'Query.rows']: override } } },
  );
  return { ...started, refusePages: (from) => void (refusedFrom = from) };
}

function typeAt(index: number, { items }: Habits): string {
  if (items === 'objects') return 'Row';
  return index % 2 === 0 ? 'Even' : 'Odd';
}

function filtersOf({ filters, cursor }: Habits): readonly string[] {
  return filters.filter((name) => name !== cursor);
}

function sdlOf(habits: Habits): string {
  const { cursor, items, isNested, page } = habits;
  const args = [
    `first: ${habits.first}`,
    `${cursor}: ${cursor === 'after' ? habits.after : 'String'}`,
    ...filtersOf(habits).map((name) => `${name}: ${name === 'beforeCursor' ? 'String' : 'Int'}`),
  ];
  const list = `rows(${args.join(', ')}): ${page === 'nothing' ? 'RowPage' : 'RowsResult'}!`;
  const fields = `${habits.identity === 'id' ? 'id: Int!' : ''} code: String value: String!`;
  const ofResult = page === 'interface' ? 'implements RowsResult' : '';
  return `
    type Query { ${isNested ? 'box(id: Int!): Box' : list} }
    ${isNested ? `type Box { id: Int! ${list} }` : ''}
    ${page === 'union' ? 'union RowsResult = RowPage | RowError | RowLockedError' : ''}
    ${page === 'interface' ? 'interface RowsResult { took: Int }' : ''}
    ${
      items === 'objects'
        ? `type Row { ${fields} }`
        : `interface Row { ${fields} } type Even implements Row { ${fields} } type Odd implements Row { ${fields} }`
    }
    # Their fields of one name have several types.
    type RowError ${ofResult} { took: Int code: String! message: String! }
    type RowLockedError ${ofResult} { took: Int code: Int! message: String }
    type RowPage ${ofResult} {
      took: Int
      items: [Row${habits.isNullable ? '' : '!'}]!
      pageInfo: PageInfo!
      ${habits.isCounted ? 'count: Int!' : ''}
    }
    type PageInfo { hasNextPage: Boolean${habits.hasNext === null ? '' : '!'} endCursor: String }`;
}
