import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  makeExecutableSchema,
  pageOf,
  type PageArgs,
} from '../support/imitations/executable-schema.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/imitations/fake-upstream.ts';
import { randomRuns } from '../support/random/random-runs.ts';

/** How the list of a service is made. */
interface Habits {
  readonly cursor: string;
  readonly firstIsRequired: boolean;
  /** Names of filters, of which some are names of the gateway's own arguments. */
  readonly filters: readonly string[];
  /** What the records are identified by: `nothing` and `values` are without an id. */
  readonly identity: 'id' | 'nothing' | 'values';
  readonly items: 'objects' | 'interfaces';
  readonly isNullable: boolean;
  /** What the page's count counts. */
  readonly count: 'none' | 'all' | 'page' | 'atMost20';
  readonly countName: string;
  readonly cap: number;
  readonly records: number;
  readonly isNested: boolean;
}

const HABITS: fc.Arbitrary<Habits> = fc.record({
  cursor: fc.constantFrom('after', 'afterCursor', 'cursor', 'pageCursor', 'startAfter'),
  firstIsRequired: fc.boolean(),
  filters: fc.subarray(['limit', 'last', 'before', 'beforeCursor', 'named']),
  identity: fc.constantFrom('id', 'nothing', 'values'),
  items: fc.constantFrom('objects', 'interfaces'),
  isNullable: fc.boolean(),
  count: fc.constantFrom('none', 'all', 'page', 'atMost20'),
  countName: fc.constantFrom('count', 'total', 'totalCount'),
  cap: fc.constantFrom(7, 12, 50, 200),
  records: fc.nat(130),
  isNested: fc.boolean(),
});

test('lists with random habits are derived, and give what the service has', async () => {
  await fc.assert(
    fc.asyncProperty(HABITS, fc.nat(), async (habits, seed) => {
      const { records, identity, isNested } = habits;
      await using world = await startWorld(habits);
      const all = Array.from({ length: records }, (_, index) => `v${index}`);
      const [open, close] = isNested ? ['box: box(id: 1) {', '}'] : ['', ''];
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
      const paged: string[] = [];
      for (let after: string | null = null; ;) {
        const { page: next }: Part = await ask(
          `page: rowsConnection(first: ${size}, after: $after) { edges { cursor node { value } } pageInfo { hasNextPage } }`,
          { after },
        );
        paged.push(...next!.edges.map(({ node }) => node.value));
        if (!next!.pageInfo.hasNextPage) break;
        after = next!.edges.at(-1)!.cursor;
      }
      expect(paged).toEqual(all);
      const last = habits.filters.includes('last') ? 'connectionLast' : 'last';
      const { page: end } = await ask(
        `page: rowsConnection(${last}: 3) { edges { cursor node { value } } }`,
      );
      expect(end!.edges.map(({ node }) => node.value)).toEqual(all.slice(-3));
    }),
    { numRuns: randomRuns(40), timeout: 20_000, interruptAfterTimeLimit: 90_000 },
  );
}, 120_000);

interface Part {
  readonly all?: readonly { readonly value: string }[];
  readonly page?: {
    readonly totalCount: number;
    readonly edges: readonly { readonly cursor: string; readonly node: { value: string } }[];
    readonly pageInfo: { readonly hasNextPage: boolean };
  };
}

function startWorld(habits: Habits): Promise<GatewayOverFake> {
  const { cursor, cap, count, countName, identity, isNested } = habits;
  const sdl = sdlOf(habits);
  const rows = Array.from({ length: habits.records }, (_, index) => ({
    __typename: index % 2 === 0 ? 'Even' : 'Odd',
    id: index,
    // Two of them together are different in each record.
    owner: { name: `o${index % 11}` },
    kind: Math.floor(index / 11),
    value: `v${index}`,
  }));
  const page = (args: PageArgs & Record<string, unknown>) => {
    const after = args[cursor] as string | null | undefined;
    const { items, pageInfo } = pageOf(
      rows,
      { first: args.first ?? null, after: after ?? null },
      cap,
    );
    const counts = {
      none: 0,
      all: rows.length,
      page: items.length,
      atMost20: Math.min(rows.length, 20),
    };
    return { items, pageInfo, [countName]: counts[count] };
  };
  const list = (_: unknown, args: PageArgs & Record<string, unknown>) => page(args);
  const resolvers = isNested
    ? { Query: { box: () => ({ id: 1 }) }, Box: { rows: list } }
    : { Query: { rows: list } };
  const key = isNested ? 'Box.rows' : 'Query.rows';
  const overrides = identity === 'values' && {
    fields: { [key]: { identity: ['owner.name', 'kind'] } },
  };
  return startGatewayOverFake(
    { schema: makeExecutableSchema(sdl, resolvers) },
    { snapshot: sdl, ...(overrides && { overrides }) },
  );
}

function sdlOf(habits: Habits): string {
  const { cursor, filters, firstIsRequired, items, count, countName, identity } = habits;
  const args = [
    `first: Int${firstIsRequired ? '!' : ''}`,
    `${cursor}: String`,
    ...filters.map((name) => `${name}: ${name === 'beforeCursor' ? 'String' : 'Int'}`),
  ];
  const list = `rows(${args.join(', ')}): RowPage!`;
  const fields = `${identity === 'id' ? 'id: Int!' : ''} owner: Owner! kind: Int! value: String!`;
  const types =
    items === 'objects'
      ? `type Row { ${fields} }`
      : `interface Row { ${fields} } type Even implements Row { ${fields} } type Odd implements Row { ${fields} }`;
  return `
    type Query { ${habits.isNested ? 'box(id: Int!): Box' : list} }
    ${habits.isNested ? `type Box { id: Int! ${list} }` : ''}
    ${types}
    type Owner { name: String! }
    type RowPage {
      items: [Row${habits.isNullable ? '' : '!'}]! pageInfo: PageInfo!
      ${count === 'none' ? '' : `${countName}: Int!`}
    }
    type PageInfo { hasNextPage: Boolean! endCursor: String }`;
}
