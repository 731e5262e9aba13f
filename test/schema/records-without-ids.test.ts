import { expect, test } from 'vitest';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';

const ROWS = /* GraphQL */ `
  type Query {
    rows(first: Int, after: String): RowPage!
    odd(first: Int, after: String): OddPage!
  }
  interface Odd {
    code: String
    text: String
  }
  type Row implements Odd {
    code: String
    text: String
    at: Int!
  }
  type Other implements Odd {
    code: String
    text: String
  }
  type RowPage {
    items: [Row!]!
    pageInfo: PageInfo!
  }
  type OddPage {
    items: [Odd]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
`;
const OVERRIDES = {
  fields: {
    'Query.rows': { identity: 'code' },
    'Query.odd': { identity: 'code' },
  },
};

const CODES = ['a', 'A', '', 'a,', 'é"\\', '1', '01', null, null] as const;

test.each(['rows', 'odd'])(
  'records of %s whose codes differ are never treated as one, and a record without a code keeps its position',
  async (field) => {
    const all = Array.from({ length: 130 }, (_, index) => {
      const code = index in CODES ? CODES[index] : `c${index}`;
      const __typename = index % 2 === 0 ? 'Row' : field === 'odd' ? 'Other' : 'Row';
      return { __typename, code, text: `t${index}`, at: index };
    });
    const page = (_: unknown, args: PageArgs) => pageOf(all, args);
    const schema = makeExecutableSchema(ROWS, { Query: { rows: page, odd: page } });
    await using world = await startGatewayOverFake(
      { schema },
      { snapshot: ROWS, overrides: OVERRIDES },
    );
    const name = field === 'rows' ? 'Rows' : 'Odd';
    for (let walk = 0; walk < 2; walk += 1) {
      const { data } = await world.ask<Record<string, { text: string }[]>>(
        `{ all${name} { text } }`,
      );
      expect(data[`all${name}`]).toEqual(all.map(({ text }) => ({ text })));
    }
    const { data } = await world.ask<Record<string, { edges: { cursor: string }[] }>>(
      `{ ${field}Connection(first: 130) { edges { cursor } } }`,
    );
    const { edges } = data[`${field}Connection`]!;
    expect(new Set(edges.map(({ cursor }) => cursor)).size).toBe(130);
    for (const at of [0, 3, 5, 7, 8, 128]) {
      const next = await world.ask<Record<string, { nodes: { text: string }[] }>>(
        `query ($after: String) { ${field}Connection(first: 1, after: $after) { nodes { text } } }`,
        { after: edges[at]!.cursor },
      );
      expect(next.data[`${field}Connection`]!.nodes).toEqual([{ text: all[at + 1]!.text }]);
    }
  },
);
