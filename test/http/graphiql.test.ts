import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parse, print } from 'graphql';
import { createSchema } from 'graphql-yoga';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { examples } from '../../src/http/graphiql/examples.ts';
import { createGraphiql, type GraphiqlOptions } from '../../src/http/graphiql/graphiql.ts';
import type { Stage } from '../../src/http/exchange.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { startSandboxInside } from '../support/gateway/sandbox-inside.ts';
import { handlerFor } from '../support/gateway/stages.ts';
import { openBrowser, recordComplaints, recordRequests } from '../support/clients/browser.ts';

const patience = 60_000;
const TABS = ['AllPersons', 'Persons', 'PersonsConnection', 'LastPersons', 'Person', 'Entities'];
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

  beforeEach(async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    requests = recordRequests(page);
    complaints = recordComplaints(page);
  });
  afterEach(async () => {
    await page.goto('about:blank');
    page.removeAllListeners();
  });

  test('GraphiQL sends no request to the internet', async () => {
    await using server = await serve();
    await page.goto(server.url);
    await page.locator('.graphiql-execute-button').click();
    await result().getByText('"Ada"').waitFor();
    await line(/firstName/).click();
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
    expect(await tabs().allTextContents()).toEqual(TABS);

    await page.locator('.graphiql-execute-button').click();
    await result().getByText('"Grace"').waitFor();

    await page.setViewportSize({ width: 1100, height: 700 });
    for (const [tab, shown] of [
      ['Persons', '"position-2"'],
      ['PersonsConnection', '"hasPreviousPage"'],
      ['LastPersons', '"totalCount"'],
      ['Person', '"Ada"'],
      ['Entities', '"Ada"'],
    ] as const) {
      await open(tab);
      await line(new RegExp(`^query\\s${tab}\\b`)).click();
      await page.keyboard.press('Control+Enter');
      await result().getByText(shown).waitFor();
    }
    const variables = server.received.map(
      (each) => (each.body as { variables?: unknown }).variables,
    );
    expect(variables).toContainEqual({ first: 120, after: null });
    expect(variables).toContainEqual({ id: '1' });
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

  test('GraphiQL has a field for the key of callers, which serves all tabs and the documentation, and is stored nowhere', async () => {
    const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: undefined };
    await using gateway = await startGatewayOverSandbox(
      { persons: 2_345 },
      { config: { auth: { ...auth }, pagesPerMinute: 6_000 } },
    );
    await using server = await listen(gateway.gateway.handler);
    await page.goto(server.origin);
    expect(page.url()).toBe(`${server.origin}/graphql`);
    const field = page.getByLabel('API key');
    const documentation = page.locator('.graphiql-doc-explorer');
    await page.getByText('answers only callers with an API key').waitFor();
    await field.fill('rsk_wrong');
    await field.press('Enter');
    await page.getByText('does not accept this API key').waitFor();

    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await documentation.getByText('Error fetching schema').waitFor();
    await page.locator('.graphiql-execute-button').click();
    await result().getByText('"UNAUTHENTICATED"').waitFor();
    await field.fill(KEY);
    await field.press('Enter');
    await documentation.getByText('Query', { exact: true }).waitFor();
    await page.getByText('Sent with every request of this page').waitFor();
    await result().getByText('"UNAUTHENTICATED"').waitFor({ state: 'detached' });

    expect(await tabs().allTextContents()).toEqual(TABS);
    for (const [tab, shown] of [
      ['AllPersons', '"allPersons"'],
      ['Persons', '"endCursor"'],
      ['PersonsConnection', '2345'],
      ['LastPersons', '2345'],
      ['Person', 'null'],
      ['Entities', 'null'],
    ] as const) {
      await open(tab);
      await page.locator('.graphiql-execute-button').click();
      await result().getByText(shown).first().waitFor();
      expect(await result().textContent()).not.toContain('errors');
    }

    await stored('tabState', /LastPersons/);
    const kept = await page.evaluate(() =>
      JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]),
    );
    expect(kept).not.toContain(KEY);
    await page.reload();
    await page.getByText('answers only callers with an API key').waitFor();
    expect(await field.inputValue()).toBe('');
    expect(elsewhere({ origin: server.origin })).toEqual([]);
    expect(complaints.filter((each) => !each.includes('401'))).toEqual([]);
  });

  test('GraphiQL sends keys and tokens as what they are, to the gateway only, and a typed header instead', async () => {
    await using server = await serve({ credentials: { apiKeys: true, tokens: true } });
    await page.goto(server.url);
    const field = page.getByLabel('API key or bearer token');
    const sent = async () => {
      const request = page.waitForRequest(server.url);
      await page.locator('.graphiql-execute-button').click();
      const { authorization, 'x-api-key': key } = await (await request).allHeaders();
      await result().getByText('"Ada"').waitFor();
      return { authorization, key };
    };
    await field.fill('Bearer eyJh.eyJz.sig');
    expect(await sent()).toEqual({ authorization: 'Bearer eyJh.eyJz.sig', key: undefined });
    await field.fill(KEY);
    expect(await sent()).toEqual({ authorization: undefined, key: KEY });

    const elsewhereToo = page.waitForRequest(/\/pictures\//);
    await page.evaluate(() => fetch('/pictures/ada.png'));
    expect(await (await elsewhereToo).allHeaders()).not.toHaveProperty('x-api-key');

    await typeInto('Headers', '{"authorization": "Bearer typed"}');
    expect(await sent()).toEqual({ authorization: 'Bearer typed', key: undefined });
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
    await stored('tabState', /about Ada/);
    expect(page.url()).toBe(server.url);

    await page.reload();
    await editor().getByText('about Ada').waitFor();
    expect(await tabs().allTextContents()).toEqual(TABS);
  });

  test('GraphiQL shows the examples even if another GraphiQL was served at the same address before', async () => {
    await using server = await serve();
    await page.goto(`${server.origin}/elsewhere`);
    await page.evaluate(() => {
      const old = { id: '1', title: 'Old', query: 'query Old { a }', operationName: 'Old' };
      const state = {
        tabs: [{ ...old, variables: null, headers: null, response: null }],
        activeTabIndex: 0,
      };
      localStorage.setItem('graphiql:tabState', JSON.stringify(state));
    });
    await page.goto(server.url);
    await editor().getByText('Welcome!').waitFor();
    expect(await tabs().allTextContents()).toEqual(TABS);
  });

  test('GraphiQL shows the examples of the schema that is served, and keeps the tabs of each schema', async () => {
    const others = examples([{ field: 'countries', selection: 'code' }]);
    const other = handlerFor(schema, {
      first: [createGraphiql({ enabled: true, examples: others }).page],
    });
    const usualHandler = handlerFor(schema, { first: [usualPage] });
    let handler = usualHandler;
    await using server = await listen((request, response) => handler(request, response));
    await page.goto(`${server.origin}/graphql`);
    await editor().getByText('Welcome!').waitFor();
    await editor().click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# about Ada\n');
    await stored('tabState', /about Ada/);

    handler = other;
    await page.reload();
    await tabs().getByText('Countries').waitFor();
    expect(await tabs().allTextContents()).toEqual(['Welcome', 'Countries']);

    handler = usualHandler;
    await page.reload();
    await editor().getByText('about Ada').waitFor();
    expect(await tabs().allTextContents()).toEqual(TABS);
  });

  test.each([1280, 1100])(
    'no line of an example is hidden behind the buttons of the editor, in a window of %i pixels',
    async (width) => {
      await page.setViewportSize({ width, height: 1000 });
      await using server = await serve();
      await page.goto(server.url);
      for (const tab of TABS) {
        await open(tab);
        const ends = await line(/\S/).evaluateAll((lines) =>
          lines.map((each) => each.firstElementChild!.getBoundingClientRect().right),
        );
        const buttons = await page.locator('.graphiql-execute-button').boundingBox();
        expect(ends.length).toBeGreaterThan(5);
        expect(Math.max(...ends)).toBeLessThan(buttons!.x);
      }
    },
  );

  test('the bars above GraphiQL follow its theme, or else the one of the browser', async () => {
    await using server = await serve({
      isSandbox: true,
      credentials: { apiKeys: true, tokens: false },
    });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto(server.url);
    await page.getByText('the people are made up').waitFor();
    expect(await brightnessOfBars()).toEqual([
      ['dark', 'bright'],
      ['dark', 'bright'],
    ]);
    await chooseTheme('Light');
    expect(await brightnessOfBars()).toEqual([
      ['bright', 'dark'],
      ['bright', 'dark'],
    ]);
    await page.emulateMedia({ colorScheme: 'light' });
    await chooseTheme('Dark');
    expect(await brightnessOfBars()).toEqual([
      ['dark', 'bright'],
      ['dark', 'bright'],
    ]);
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(800);
    await page.emulateMedia({ colorScheme: null });
  });

  test('GraphiQL shows the same tabs after a reload, although nothing was typed', async () => {
    await using server = await serve();
    await page.goto(server.url);
    await editor().getByText('Welcome!').waitFor();
    await stored('tabState', /Welcome!/);
    await page.reload();
    await editor().getByText('Welcome!').waitFor();
    expect(await tabs().allTextContents()).toEqual(TABS);
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

  async function open(tab: string): Promise<void> {
    await tabs().getByText(tab, { exact: true }).click();
    await stored('query', new RegExp(`query ${tab}\\b`));
  }

  /** Waits until the storage of the page has this text. */
  async function stored(item: 'tabState' | 'query', text: RegExp): Promise<void> {
    await page.waitForFunction(
      ([key, pattern]) =>
        Object.keys(localStorage).some(
          (each) => each.endsWith(key) && pattern.test(localStorage.getItem(each)!),
        ),
      [`graphiql:${item}`, text] as const,
    );
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

  /** Of the background and the text of each bar. */
  async function brightnessOfBars(): Promise<unknown> {
    return page.locator('.bar').evaluateAll((bars) =>
      bars.map((bar) => {
        const { backgroundColor, color } = getComputedStyle(bar);
        return [backgroundColor, color].map((each) => {
          const [red = 0, green = 0, blue = 0] = each.match(/\d+/g)!.map(Number);
          return red + green + blue > 3 * 128 ? 'bright' : 'dark';
        });
      }),
    );
  }

  async function chooseTheme(name: 'Light' | 'Dark'): Promise<void> {
    await page.getByRole('button', { name: 'Open settings dialog' }).click();
    await page.getByRole('button', { name, exact: true }).click();
    await page.keyboard.press('Escape');
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

type Received = { headers: Record<string, string>; body: unknown };

const KEY = 'rsk_of-the-portal';

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
