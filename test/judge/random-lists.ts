import fc from 'fast-check';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';
import { worldOf, type World } from './world.ts';

/** How the list of a service is made. */
export const HABITS = fc.record({
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
  /** Whether the service returns an error in place of each page behind a result. */
  isRefused: fc.nat(5).map((percent) => percent === 0),
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
  isRefused: false,
};

/** Filters have the names of all arguments of the gateway, and one is a cursor for the other direction. */
export const CLASHING = { ...USUAL, filters: ['limit', 'after', 'last', 'before', 'beforeCursor'] };
export const BY_CODE: Habits = {
  ...USUAL,
  identity: 'code',
  items: 'interfaces',
  records: 60,
  hasNext: null,
};

/** Different ones are never treated as one, and a record without one keeps its position. */
const CODES = ['a', 'A', '', 'a,', 'é"\\', '1', '01', null, null] as const;

const box = (_: unknown, { id }: { id: number }) => ({ __typename: 'Box', id });

/** A service with one such list. */
export function listWorld(habits: Habits): World {
  const { cursor, cap, isCounted, identity, isNested, isRefused } = habits;
  const rows = Array.from({ length: habits.records }, (_, index) => ({
    __typename: habits.items === 'objects' ? 'Row' : index % 2 === 0 ? 'Even' : 'Odd',
    id: index,
    code: index in CODES ? CODES[index] : `c${index}`,
    value: `v${index}`,
  }));
  const list = (_: unknown, args: PageArgs & Record<string, unknown>) => {
    if (isRefused && habits.page !== 'nothing')
      return { __typename: 'RowError', took: null, errorType: 'FORBIDDEN', message: 'No.' };
    const after = args[cursor] as string | null | undefined;
    const { pageInfo, ...page } = pageOf(
      rows,
      { first: args.first ?? null, after: after ?? null },
      cap,
    );
    // Some services have null on the last page.
    const hasNextPage = pageInfo.hasNextPage || habits.hasNext;
    return { __typename: 'RowPage', ...page, pageInfo: { ...pageInfo, hasNextPage } };
  };
  const resolvers = isNested ? { Query: { box }, Box: { rows: list } } : { Query: { rows: list } };
  const override = {
    ...(isCounted && { count: 'count' }),
    ...(identity === 'code' && { identity }),
  };
  return worldOf(makeExecutableSchema(sdlOf(habits), resolvers), {
    overrides: { fields: { [isNested ? 'Box.rows' : 'Query.rows']: override } },
  });
}

function sdlOf(habits: Habits): string {
  const { cursor, filters, items, isNested, page } = habits;
  const args = [
    `first: ${habits.first}`,
    `${cursor}: ${cursor === 'after' ? habits.after : 'String'}`,
    ...filters
      .filter((name) => name !== cursor)
      .map((name) => `${name}: ${name === 'beforeCursor' ? 'String' : 'Int'}`),
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
    type RowError ${ofResult} { took: Int errorType: String! message: String! }
    type RowLockedError ${ofResult} { took: Int errorType: Int! message: String }
    type RowPage ${ofResult} {
      took: Int
      items: [Row${habits.isNullable ? '' : '!'}]!
      pageInfo: PageInfo!
      ${habits.isCounted ? 'count: Int!' : ''}
    }
    type PageInfo { hasNextPage: Boolean${habits.hasNext === null ? '' : '!'} endCursor: String }`;
}
