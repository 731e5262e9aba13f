import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { altered } from '../support/imitations/scripted.ts';

const snapshot = readFileSync('schema/results.graphql', 'utf8');
const IDENTITY = { 'Query.responses': { identity: 'url' } };

interface Response {
  readonly url: string;
}
type Connection = {
  readonly totalCount?: number;
  readonly edges: readonly { readonly cursor: string; readonly node: Response }[];
};

const QUERY = `query ($first: Int, $after: String, $last: Int, $before: String) {
  responsesConnection(first: $first, after: $after, last: $last, before: $before) {
    totalCount edges { cursor node { url } }
  }
}`;

describe('without adapters.json', () => {
  let world: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
  beforeAll(async () => {
    world = await startGatewayOverSandbox({ persons: 150, schema: 'results' }, { snapshot });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test('a list of records without ids is drained page by page, every time', async () => {
    for (let walk = 0; walk < 2; walk += 1) {
      const before = world.sandbox.stats.requests.graphql;
      const { data, errors } = await world.ask<{ allResponses: Response[] }>(
        '{ allResponses { url } }',
      );
      expect(errors).toBeUndefined();
      expect(new Set(data.allResponses.map(({ url }) => url)).size).toBe(300);
      expect(data.allResponses).toHaveLength(300);
      expect(world.sandbox.stats.requests.graphql - before).toBe(7);
    }
  });

  test('it has no connection, because no cursor could name a record', async () => {
    const { errors } = await world.ask('{ responsesConnection { totalCount } }');
    expect(errors![0]!.message).toMatch(/Cannot query field "responsesConnection"/);
    const { data } = await world.ask<{ __type: unknown }>(
      '{ __type(name: "ResponseItemConnection") { name } }',
    );
    expect(data.__type).toBeNull();
  });
});

describe('with an identity in adapters.json', () => {
  let world: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
  let urls: readonly string[];
  beforeAll(async () => {
    world = await startGatewayOverSandbox(
      { persons: 150, schema: 'results' },
      { snapshot, overrides: { fields: IDENTITY } },
    );
    const { data } = await world.ask<{ allResponses: Response[] }>('{ allResponses { url } }');
    urls = data.allResponses.map(({ url }) => url);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const ask = async (variables: Record<string, unknown>) => {
    const { data, errors } = await world.ask<{ responsesConnection: Connection }>(QUERY, variables);
    expect(errors).toBeUndefined();
    return data.responsesConnection;
  };
  test('a second drain reads its pages in parallel, and gives every record once', async () => {
    const { data } = await world.ask<{ allResponses: Response[] }>('{ allResponses { url } }');
    expect(data.allResponses.map(({ url }) => url)).toEqual(urls);
    expect(new Set(urls).size).toBe(300);
  });

  test('its connection has cursors and a total, in both directions', async () => {
    const page = await ask({ first: 120 });
    expect(urlsOf(page)).toEqual(urls.slice(0, 120));
    expect(page.totalCount).toBe(300);
    for (const at of [0, 49, 50, 119]) {
      const { cursor } = page.edges[at]!;
      expect(urlsOf(await ask({ first: 3, after: cursor }))).toEqual(urls.slice(at + 1, at + 4));
      expect(urlsOf(await ask({ last: 3, before: cursor }))).toEqual(
        urls.slice(Math.max(0, at - 3), at),
      );
    }
    expect(urlsOf(await ask({ last: 5 }))).toEqual(urls.slice(-5));
  });

  test('a caller may select anything beside the identity', async () => {
    const { data, errors } = await world.ask<{ all: object[]; page: { nodes: object[] } }>(`{
      all: allResponses { person { id } workflowStatus { name id } _id: url url: rating }
      page: responsesConnection(first: 60) { edges { cursor node { person { id firstName } } } nodes { rating } }
    }`);
    expect(errors).toBeUndefined();
    expect(data.all[0]).toEqual({
      person: { id: expect.any(Number) },
      workflowStatus: { name: expect.any(String), id: expect.any(Number) },
      _id: urls[0],
      url: expect.any(Number),
    });
  });
});

function urlsOf({ edges }: Connection): string[] {
  return edges.map(({ node }) => node.url);
}

const NESTED = /* GraphQL */ `
  type Query {
    box(id: ID!): Box
    boxes(first: Int, after: String): BoxPage!
    settings: Settings
  }
  type Box {
    id: ID!
    notes(first: Int, after: String): NotePage!
  }
  type Settings {
    notes(first: Int, after: String): NotePage!
  }
  type BoxPage {
    items: [Box!]!
    pageInfo: PageInfo!
  }
  type Note {
    text: String!
  }
  type NotePage {
    items: [Note!]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
`;

/** Most have the same text, so that only their position distinguishes them. */
function notes(of: string) {
  return Array.from({ length: 120 }, (_, index) => ({ text: `${of} ${Math.floor(index / 60)}` }));
}

test('nested lists of records without ids get a list that is read whole, and no connection', async () => {
  const box = (id: string) => ({ id, notes: (args: PageArgs) => pageOf(notes(`box ${id}`), args) });
  const schema = makeExecutableSchema(NESTED, {
    Query: {
      box: (_: unknown, { id }: { id: string }) => box(id),
      boxes: (_: unknown, args: PageArgs) => pageOf(['1', '2', '3'].map(box), args),
      settings: () => ({ notes: (args: PageArgs) => pageOf(notes('settings'), args) }),
    },
  });
  await using world = await startGatewayOverFake({ schema }, { snapshot: NESTED });
  const { data, errors } = await world.ask(`{
    box(id: "7") { allNotes { text } }
    allBoxes { id allNotes { text } few: allNotes(limit: 61) { text } }
    settings { allNotes { text } }
  }`);
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    box: { allNotes: notes('box 7') },
    allBoxes: ['1', '2', '3'].map((id) => ({
      id,
      allNotes: notes(`box ${id}`),
      few: notes(`box ${id}`).slice(0, 61),
    })),
    settings: { allNotes: notes('settings') },
  });
  const refused = await world.ask('{ box(id: "7") { notesConnection { totalCount } } }');
  expect(refused.errors![0]!.message).toMatch(/Cannot query field "notesConnection"/);
});

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

describe.each(['compact', 'with an error'] as const)('an answer that is %s', (form) => {
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
      if (form === 'with an error') {
        world.upstream.answer(altered((answer) => void (answer.errors = [{ message: 'Beside.' }])));
      }
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
});
