import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parse, print } from 'graphql';
import { createSchema } from 'graphql-yoga';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { examples } from '../../src/http/graphiql/examples.ts';
import { createGraphiql, type GraphiqlOptions } from '../../src/http/graphiql/graphiql.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { startSandboxInside } from '../support/gateway/sandbox-inside.ts';
import { handlerFor } from '../support/gateway/stages.ts';
import { openBrowser, recordComplaints, recordRequests } from '../support/clients/browser.ts';

const patience = 60_000;
const TABS = ['AllPersons', 'Persons', 'PersonsConnection', 'LastPersons', 'Person'];
const browserAccepts = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

describe('GraphiQL in a browser', { timeout: patience }, () => {
  let browser: Browser;
  let page: Page;
  let requests: readonly string[];
  let complaints: readonly string[];

  // One page for all: its process keeps the compiled nine megabytes. Each test has an origin of its own, and so
  // nothing in its storage.
  beforeAll(async () => {
    browser = await openBrowser();
    page = await browser.newPage();
    page.setDefaultTimeout(patience / 2);
  }, patience);
  afterAll(() => browser?.close());

  beforeEach(() => {
    requests = recordRequests(page);
    complaints = recordComplaints(page);
  });
  afterEach(async () => {
    await page.goto('about:blank');
    page.removeAllListeners();
  });

  test('GraphiQL opens with a valid credential, runs its examples with it, stores it nowhere, and asks only the gateway', async () => {
    const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: undefined };
    await using gateway = await startGatewayOverSandbox(
      { persons: 2_345 },
      { config: { auth: { ...auth }, pagesPerMinute: 6_000 } },
    );
    await using server = await listen(gateway.gateway.handler);
    await page.goto(server.origin);
    expect(page.url()).toBe(`${server.origin}/graphql`);
    const field = page.getByLabel('API key');
    await page.getByText('answers only callers with an API key').waitFor();
    await field.fill('rsk_wrong');
    await field.press('Enter');
    await page.getByText('does not accept this API key').waitFor();
    expect(await tabs().count()).toBe(0);
    await field.fill(KEY);
    await field.press('Enter');
    await page.getByText('Sent with every request of this page').waitFor();
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await page.locator('.graphiql-doc-explorer').getByText('Query', { exact: true }).waitFor();

    expect(await tabs().allTextContents()).toEqual(TABS);
    for (const [tab, shown] of [
      ['AllPersons', '"allPersons"'],
      ['Persons', '"endCursor"'],
      ['PersonsConnection', '2345'],
      ['LastPersons', '2345'],
      ['Person', 'null'],
    ] as const) {
      await open(tab);
      await page.locator('.graphiql-execute-button').click();
      await result().getByText(shown).first().waitFor();
      expect(await result().textContent()).not.toContain('errors');
    }

    const kept = await page.evaluate(() =>
      JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]),
    );
    expect(kept).not.toContain(KEY);
    expect(elsewhere({ origin: server.origin })).toEqual([]);
    expect(complaints.filter((each) => !each.includes('401'))).toEqual([]);
  });

  test('GraphiQL sends keys and tokens as what they are, and to the gateway only', async () => {
    await using server = await serve({ credentials: { apiKeys: true, tokens: true } });
    await page.goto(server.url);
    const field = page.getByLabel('API key or bearer token');
    const sentWith = async (credential: string) => {
      const request = page.waitForRequest(
        (each) => each.url() === server.url && each.postData()?.includes('{ __typename }') === true,
      );
      await field.fill(credential);
      await field.press('Enter');
      const { authorization, 'x-api-key': key } = await (await request).allHeaders();
      return { authorization, key };
    };
    expect(await sentWith('Bearer eyJh.eyJz.sig')).toEqual({
      authorization: 'Bearer eyJh.eyJz.sig',
      key: undefined,
    });
    expect(await sentWith(KEY)).toEqual({ authorization: undefined, key: KEY });

    const elsewhereToo = page.waitForRequest(/\/pictures\//);
    await page.evaluate(() => fetch('/pictures/ada.png'));
    expect(await (await elsewhereToo).allHeaders()).not.toHaveProperty('x-api-key');
  });

  function tabs(): Locator {
    return page.locator('.graphiql-tab-button');
  }

  async function open(tab: string): Promise<void> {
    await tabs().getByText(tab, { exact: true }).click();
    // GraphiQL executes what it has stored.
    await page.waitForFunction(
      (pattern) => pattern.test(localStorage.getItem('graphiql:query') ?? ''),
      new RegExp(`query ${tab}\\b`),
    );
  }

  function result(): Locator {
    return page.locator('.graphiql-response .view-lines');
  }

  function elsewhere(server: { origin: string }): string[] {
    return requests.filter(
      (url) => !/^(data|blob):/.test(url) && new URL(url).origin !== server.origin,
    );
  }
});

describe('the page', () => {
  test('the page is not served if GraphiQL is off', async () => {
    await using server = await serve({ enabled: false });
    const response = await fetch(server.url, { headers: { accept: browserAccepts } });
    const strict = await fetch(server.url, { headers: { accept: 'text/html' } });
    for (const { status, headers } of [response, strict]) {
      expect([status, headers.get('content-type')]).toEqual([
        400,
        'application/json; charset=utf-8',
      ]);
    }
    for (const answer of [response, strict]) {
      expect(await answer.json()).toMatchObject({
        errors: [{ message: 'The request has no "query". Send the text of an operation.' }],
      });
    }
  });

  test('the page says that the people of the sandbox are made up, and no page of a service does', async () => {
    await using sandbox = await startSandboxInside();
    await using service = await startGatewayOverSandbox();
    const open = { headers: { accept: browserAccepts } };
    const made = await sandbox.fetch('/graphql', open);
    expect(await made.text()).toContain('the people are made up');
    expect(await (await service.fetch('/graphql', open)).text()).not.toContain('made up');
  });

  test('the page is sent compressed, and only once', async () => {
    await using server = await serve();
    const first = await fetch(server.url, { headers: { accept: browserAccepts } });
    const page = await first.text();
    expect(first.headers.get('content-encoding')).toBe('gzip');
    expect(Number(first.headers.get('content-length'))).toBeLessThan(page.length / 3);

    const etag = first.headers.get('etag') ?? '';
    const again = await fetch(server.url, {
      headers: { accept: browserAccepts, 'if-none-match': etag },
    });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe('');

    const plain = await fetch(server.url, {
      headers: { accept: browserAccepts, 'accept-encoding': 'gzip;q=0, identity' },
    });
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(await plain.text()).toBe(page);
  });

  test('the page allows neither frames of other sites nor pictures and requests elsewhere', async () => {
    await using server = await serve();
    const { headers } = await fetch(server.url, { headers: { accept: browserAccepts } });
    const policy = headers.get('content-security-policy')!.split('; ');
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("connect-src 'self'");
    expect(policy.filter((rule) => rule.startsWith('img-src')).join()).not.toMatch(/http|\*/);
  });

  test('the page shows examples as text, whatever they contain', async () => {
    const nasty = `</script><script>window.broken = true</script><!--<script><img src=x onerror="x">'"&`;
    const query = `# ${nasty}\nquery Nasty { __typename }`;
    await using server = await serve({
      examples: [{ query, variables: JSON.stringify({ nasty }) }],
    });
    const response = await fetch(server.url, { headers: { accept: browserAccepts } });
    const html = await response.text();
    expect(html).toContain('query Nasty');
    expect(html).not.toMatch(/<script>window\.broken|<!--<script>|<img src=x/);
  });

  test('the page does not change the answers to queries', async () => {
    await using server = await serve();
    const response = await fetch(`${server.url}?query={__typename}`);
    expect(await response.json()).toEqual({ data: { __typename: 'Query' } });
    expect(response.headers.get('content-security-policy')).toBeNull();
    expect(response.headers.get('etag')).toBeNull();
  });
});

describe('examples', () => {
  test('the examples request a list in each of its forms', () => {
    const made = examples([persons]);
    expect(made.map(({ query }) => body(query))).toEqual([
      'query AllPersons { allPersons(limit: 500) @stream(initialCount: 50) { id firstName } }',
      'query Persons { persons(first: 2) { items { id firstName } pageInfo { first hasNextPage endCursor } } }',
      'query PersonsConnection($first: Int, $after: String) { personsConnection(first: $first, after: $after) { totalCount edges { cursor node { id firstName } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }',
      'query LastPersons { personsConnection(last: 3) { totalCount edges { cursor node { id firstName } } pageInfo { hasPreviousPage startCursor } } }',
      'query Person($id: ID!) { person(id: $id) { id firstName } }',
      'query Entities($id: ID!) { _entities(representations: [{__typename: "Person", id: $id}]) { __typename ... on Person { id firstName } } }',
    ]);
    expect(JSON.parse(made[2]?.variables ?? '')).toEqual({ first: 120, after: null });
    expect(JSON.parse(made[5]?.variables ?? '')).toEqual({ id: '1' });
  });

  test('the examples leave out what is only for routers, and use the names and types that are served', () => {
    const made = examples(
      [
        {
          field: 'persons',
          all: { field: 'allPersons', limit: 'drainLimit' },
          connection: { field: 'personsConnection', after: 'after', last: 'connectionLast' },
          entity: { type: 'Person', field: 'personByNumber', argument: 'number', idType: 'Int!' },
          selection: 'id',
        },
      ],
      { isRouterOnly: true },
    );
    const queries = made.map(({ query }) => body(query));
    expect(queries.join()).not.toContain('_entities');
    expect(queries[0]).toContain('allPersons(drainLimit: 500)');
    expect(queries[3]).toContain('personsConnection(connectionLast: 3)');
    expect(queries[4]).toBe(
      'query PersonByNumber($id: Int!) { personByNumber(number: $id) { id } }',
    );
    expect(JSON.parse(made[4]?.variables ?? '')).toEqual({ id: 1 });
  });

  test('each example begins with a comment, and all of its lines fit the editor', () => {
    const withLongNames = {
      ...persons,
      all: { field: 'allInterviewParticipants', limit: 'limit' },
      connection: { ...persons.connection, field: 'interviewParticipantsConnection' },
    };
    for (const list of [persons, withLongNames]) {
      for (const { query } of examples([list, { field: 'vacancies', selection: 'id' }])) {
        expect(query).toMatch(/^# .*\n# /);
        for (const line of query.split('\n')) expect(line.length).toBeLessThanOrEqual(42);
      }
    }
  });

  test('the examples show the list with the most forms, and name the others', () => {
    const made = examples([
      { field: 'countries', selection: 'code' },
      {
        ...persons,
        field: 'PREFIX_persons',
        all: { field: 'PREFIX_allPersons', limit: 'limit' },
        pageInfo: 'endCursor',
      },
    ]);
    expect(made.map(({ query }) => /^query (\w+)/m.exec(query)?.[1])).toEqual([
      'PREFIX_allPersons',
      'PREFIX_persons',
      'PersonsConnection',
      'LastPREFIX_persons',
      'Person',
      'Entities',
    ]);
    expect(body(made[1]?.query ?? '')).toContain('pageInfo { endCursor }');
    expect(made[1]?.query).toContain('countries');
  });

  test('there is an example even without a list', () => {
    expect(examples([]).map(({ query }) => body(query))).toEqual(['query Welcome { __typename }']);
  });
});

function body(query: string): string {
  return print(parse(query)).replaceAll(/\s+/g, ' ').trim();
}

const persons = {
  field: 'persons',
  all: { field: 'allPersons', limit: 'limit' },
  connection: { field: 'personsConnection', after: 'after', last: 'last' },
  entity: { type: 'Person', field: 'person', argument: 'id', idType: 'ID!' },
  selection: 'id firstName',
} as const;

const people = [
  { id: '1', firstName: 'Ada', picture: '///pictures.example/ada.png' },
  { id: '2', firstName: 'Grace' },
];

const schema = createSchema({
  typeDefs: /* GraphQL */ `
    type Query {
      "Every person there is, in one answer."
      allPersons(limit: Int): [Person!]
      persons(first: Int, after: String): PersonPage!
      personsConnection(first: Int, after: String, last: Int): PersonConnection
      person(id: ID!): Person
      _entities(representations: [_Any!]!): [Person]!
    }
    scalar _Any
    directive @stream(initialCount: Int) on FIELD
    type PersonPage {
      items: [Person!]!
      pageInfo: UpstreamPageInfo!
    }
    type UpstreamPageInfo {
      first: Int!
      hasNextPage: Boolean!
      endCursor: String
    }
    type PersonConnection {
      edges: [PersonEdge!]!
      pageInfo: PageInfo!
      totalCount: Int
    }
    type PersonEdge {
      cursor: String!
      node: Person!
    }
    type PageInfo {
      hasNextPage: Boolean!
      hasPreviousPage: Boolean!
      startCursor: String
      endCursor: String
    }
    type Person {
      id: ID!
      firstName: String
      picture: String
    }
  `,
  resolvers: {
    Query: {
      allPersons: () => people,
      persons: (_root, { first }: { first: number }) => ({
        items: people,
        pageInfo: { first, hasNextPage: false, endCursor: 'position-2' },
      }),
      personsConnection: () => ({
        totalCount: people.length,
        edges: people.map((node) => ({ cursor: node.id, node })),
        pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: '1', endCursor: '2' },
      }),
      person: () => people[0],
      _entities: () => [people[0]],
    },
  },
});

const KEY = 'rsk_of-the-portal';

const usual = { enabled: true, examples: examples([persons]) };
/** Shared, because building and compressing its nine megabytes takes most of the time. */
const usualPage = createGraphiql(usual).page;

async function serve(options?: Partial<GraphiqlOptions>) {
  const page = options ? createGraphiql({ ...usual, ...options }).page : usualPage;
  const handler = handlerFor(schema, { first: [page] });
  const server = await listen(handler);
  return { ...server, url: `${server.origin}/graphql` };
}

async function listen(handler: RequestListener) {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
