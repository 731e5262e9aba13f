import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSchema } from 'graphql-yoga';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { examples } from '../../src/http/graphiql/examples.ts';
import { createGraphiql, type GraphiqlOptions } from '../../src/http/graphiql/graphiql.ts';
import type { Stage } from '../../src/http/exchange.ts';
import { handlerFor } from '../support/gateway/stages.ts';
import { openBrowser, recordComplaints, recordRequests } from '../support/clients/browser.ts';

const patience = 60_000;
const browserAccepts = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

describe('GraphiQL in a browser', { timeout: patience }, () => {
  let browser: Browser;
  let page: Page;
  let requests: readonly string[];
  let complaints: readonly string[];

  beforeAll(async () => {
    browser = await openBrowser();
  }, patience);
  afterAll(() => browser?.close());

  beforeEach(async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    page = await context.newPage();
    page.setDefaultTimeout(patience / 2);
    requests = recordRequests(page);
    complaints = recordComplaints(page);
  });
  afterEach(() => page.context().close());

  test('GraphiQL sends no request to the internet', async () => {
    await using server = await serve();
    await page.goto(server.url);
    await page.locator('.graphiql-execute-button').click();
    await result().getByText('"Ada"').waitFor();
    await editor().click();
    await page.keyboard.press('Control+Space');
    await page.locator('.suggest-widget').getByText('firstName').first().waitFor();
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await page.locator('.graphiql-doc-explorer').getByText('Query').first().waitFor();

    expect(elsewhere(server)).toEqual([]);
    expect(requests).toContain(server.url);
    expect(complaints).toEqual([]);
  });

  test('GraphiQL opens with worked examples in its tabs, and each of them can be run unchanged', async () => {
    await using server = await serve();
    await page.goto(server.url);
    await editor().getByText('Welcome!').waitFor();
    expect(await page.title()).toBe('Recruiting');
    expect(await tabs().allTextContents()).toEqual(['AllPersons', 'Persons', 'PersonsConnection']);

    await page.locator('.graphiql-execute-button').click();
    await result().getByText('"Grace"').waitFor();

    await page.setViewportSize({ width: 1100, height: 700 });
    for (const [tab, shown] of [
      ['Persons', '"position-2"'],
      ['PersonsConnection', '"hasPreviousPage"'],
    ] as const) {
      await tabs().getByText(tab, { exact: true }).click();
      await page.waitForFunction(
        (text) => localStorage.getItem('Recruiting graphiql:query')?.includes(text),
        `query ${tab}`,
      );
      await line(new RegExp(`^query\\s${tab}\\b`)).click();
      await page.keyboard.press('Control+Enter');
      await result().getByText(shown).waitFor();
    }
    expect(server.received.at(-1)?.body).toMatchObject({ variables: { first: 120, after: null } });
    expect(complaints).toEqual([]);
  });

  test('GraphiQL documents every field', async () => {
    await using server = await serve();
    await page.goto(server.url);
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    const documentation = page.locator('.graphiql-doc-explorer');
    await documentation.getByText('Query', { exact: true }).click();
    await documentation.getByText('Every person there is, in one answer.').waitFor();
    await documentation.getByText('allPersons', { exact: true }).click();
    await documentation.getByText('[Person!]').waitFor();
    expect(complaints).toEqual([]);
  });

  test('GraphiQL sends a typed header, and stores it nowhere', async () => {
    await using server = await serve();
    await page.goto(server.url);
    await typeInto('Headers', '{"x-secret": "hush-hush"}');
    await typeInto('Variables', '{"marker": 1}');
    await page.locator('.graphiql-execute-button').click();
    await result().getByText('"Ada"').waitFor();
    expect(server.received.at(-1)?.headers).toMatchObject({ 'x-secret': 'hush-hush' });

    await page.waitForFunction(() => JSON.stringify(localStorage).includes('marker'));
    const kept = await page.evaluate(() =>
      JSON.stringify([localStorage, sessionStorage, document.cookie]),
    );
    expect(kept).not.toMatch(/x-secret|hush-hush/);
  });

  test('GraphiQL keeps typed text out of the address, and restores it after a reload', async () => {
    await using server = await serve();
    await page.goto(server.url);
    await editor().click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# about Ada\n');
    await page.waitForFunction(() =>
      localStorage.getItem('Recruiting graphiql:tabState')?.includes('about Ada'),
    );
    expect(page.url()).toBe(server.url);

    await page.reload();
    await editor().getByText('about Ada').waitFor();
    expect(await tabs().allTextContents()).toEqual(['AllPersons', 'Persons', 'PersonsConnection']);
  });

  test('GraphiQL shows the examples even if another GraphiQL was served at the same address before', async () => {
    await using server = await serve();
    await page.addInitScript(() => {
      const old = { id: '1', title: 'Old', query: 'query Old { a }', operationName: 'Old' };
      const state = {
        tabs: [{ ...old, variables: null, headers: null, response: null }],
        activeTabIndex: 0,
      };
      localStorage.setItem('graphiql:tabState', JSON.stringify(state));
    });
    await page.goto(server.url);
    await editor().getByText('Welcome!').waitFor();
    expect(await tabs().allTextContents()).toEqual(['AllPersons', 'Persons', 'PersonsConnection']);
  });

  test('GraphiQL does not fetch a picture whose address is in a record', async () => {
    await using server = await serve({
      examples: [{ query: 'query Picture { allPersons { picture } }' }],
    });
    await page.goto(server.url);
    await page.locator('.graphiql-execute-button').click();
    const picture = result().getByText('pictures.example');
    await picture.waitFor();
    const refused = page.waitForEvent('console', {
      predicate: (message) => message.text().includes('Content Security Policy'),
    });
    await picture.hover();
    await refused;
    expect(elsewhere(server)).toEqual([]);
  });

  test('GraphiQL shows examples as text, whatever they contain', async () => {
    const nasty = `</script><script>window.broken = true</script><!--<script><img src=x onerror="window.broken = true">'"&`;
    await using server = await serve({
      examples: [
        { query: `# ${nasty}\nquery Nasty { __typename }`, variables: JSON.stringify({ nasty }) },
      ],
    });
    await page.goto(server.url);
    await tabs().getByText('Nasty').waitFor();
    await editor().getByText('window.broken').first().waitFor();
    expect(await page.evaluate(() => 'broken' in window)).toBe(false);
    expect(complaints).toEqual([]);
  });

  test('GraphiQL cannot be framed by another site', async () => {
    await using server = await serve();
    await using site = await listen((_request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(`<iframe src="${server.url}"></iframe>`);
    });
    const refused = page.waitForEvent('console', {
      predicate: (message) => message.text().includes('frame-ancestors'),
    });
    await page.goto(site.origin);
    await refused;
    expect(page.frames().some((frame) => frame.url() === server.url)).toBe(false);
  });

  function tabs(): Locator {
    return page.locator('.graphiql-tab-button');
  }

  function editor(): Locator {
    return page.locator('.graphiql-query-editor .view-lines');
  }

  function line(text: RegExp): Locator {
    return editor().locator('.view-line').filter({ hasText: text });
  }

  function result(): Locator {
    return page.locator('.graphiql-response .view-lines');
  }

  async function typeInto(tool: 'Headers' | 'Variables', text: string): Promise<void> {
    await page.getByRole('button', { name: tool, exact: true }).click();
    await page.locator('.graphiql-editor-tool .graphiql-editor:not(.hidden) .view-lines').click();
    await page.keyboard.insertText(text);
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
    expect(response.headers.get('content-type')).toContain('application/json');
    expect(await response.json()).toMatchObject({
      errors: [{ message: 'The request has no "query". Send the text of an operation.' }],
    });
    const strict = await fetch(server.url, { headers: { accept: 'text/html' } });
    expect(strict.status).toBe(406);
    expect(await strict.text()).toBe('');
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
      'query AllPersons { allPersons { id firstName } }',
      'query Persons { persons(first: 2) { items { id firstName } pageInfo { first hasNextPage endCursor } } }',
      'query PersonsConnection($first: Int, $after: String) { personsConnection(first: $first, after: $after) { edges { cursor node { id firstName } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }',
    ]);
    expect(JSON.parse(made[2]?.variables ?? '')).toEqual({ first: 120, after: null });
  });

  test('each example begins with a comment that fits the editor', () => {
    for (const { query } of examples([persons, { field: 'vacancies', selection: 'id' }])) {
      const comment = query.split('\n').filter((line) => line.startsWith('#'));
      expect(comment.length).toBeGreaterThan(1);
      for (const line of comment) expect(line.length).toBeLessThanOrEqual(50);
    }
  });

  test('the examples show the list with the most forms, and name the others', () => {
    const made = examples([
      { field: 'countries', selection: 'code' },
      { ...persons, field: 'PREFIX_persons', all: 'PREFIX_allPersons', pageInfo: 'endCursor' },
    ]);
    expect(made.map(({ query }) => /^query (\w+)/m.exec(query)?.[1])).toEqual([
      'PREFIX_allPersons',
      'PREFIX_persons',
      'PersonsConnection',
    ]);
    expect(body(made[1]?.query ?? '')).toContain('pageInfo { endCursor }');
    expect(made[1]?.query).toContain('countries');
  });

  test('there is an example even without a list', () => {
    expect(examples([]).map(({ query }) => body(query))).toEqual(['query Welcome { __typename }']);
  });
});

function body(query: string): string {
  return query.replaceAll(/^#.*$/gm, '').replaceAll(/\s+/g, ' ').trim();
}

const persons = {
  field: 'persons',
  all: 'allPersons',
  connection: 'personsConnection',
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
      allPersons: [Person!]
      persons(first: Int, after: String): PersonPage!
      personsConnection(first: Int, after: String): PersonConnection
    }
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
        edges: people.map((node) => ({ cursor: node.id, node })),
        pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: '1', endCursor: '2' },
      }),
    },
  },
});

type Received = { headers: Record<string, string>; body: unknown };

const usual = { enabled: true, examples: examples([persons]) };
/** Shared, because building and compressing its nine megabytes takes most of the time. */
const usualPage = createGraphiql(usual).page;

async function serve(options?: Partial<GraphiqlOptions>) {
  const page = options ? createGraphiql({ ...usual, ...options }).page : usualPage;
  const received: Received[] = [];
  const recorder: Stage = (exchange) => {
    const headers = { 'x-secret': exchange.header('x-secret') ?? '' };
    received.push({ headers, body: exchange.params });
    return undefined;
  };
  const handler = handlerFor(schema, { first: [page], checked: [recorder] });
  const server = await listen(handler);
  return { ...server, url: `${server.origin}/graphql`, received };
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
