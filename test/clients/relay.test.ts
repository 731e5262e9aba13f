import { readFileSync } from 'node:fs';
import { printSchema } from 'graphql';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { openBrowser } from '../support/clients/browser.ts';
import { bundleRelayPage, compileRelay, compileRelayApp } from '../support/clients/relay-app.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';

/** The origin of the application: the test itself answers with its page. */
const ORIGIN = 'http://localhost:3000';
const config = { nodeInterface: true, corsOrigins: [ORIGIN] };

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser?.close());

test('the artifacts of examples/relay are those that the compiler writes', () => {
  expect(() => compileRelay('examples/relay', ['--validate'])).not.toThrow();
});

test('examples/relay pages through a list in both directions, and requests one person again', async () => {
  const apiKeys = [entryFor('key-of-the-page', 'page', 'read')];
  const auth = { apiKeys, jwt: undefined };
  const credential = { 'x-api-key': 'key-of-the-page' };
  await using gateway = await startGatewayOverSandbox(
    { persons: 137 },
    { config: { ...config, auth } },
  );
  const bundle = await bundleRelayPage('test/clients/relay/people-page.js');
  const names = gateway.sandbox.persons.all().map(({ firstName }) => firstName);

  await using forward = await open(bundle, gateway, { credential, size: { first: 60 } });
  for (const count of [60, 120]) await loadMore(forward.page, { list: 0, from: count, by: 60 });
  expect(await shown(forward.page, 137)).toEqual(names);

  await using backward = await open(bundle, gateway, { credential, size: { last: 60 } });
  for (const count of [60, 120])
    await loadMore(backward.page, { list: 0, from: count, by: 60, backward: true });
  expect(await shown(backward.page, 137)).toEqual(names);

  const [response] = await Promise.all([
    backward.page.waitForResponse((reply) => reply.request().method() === 'POST'),
    backward.page.locator('li').nth(4).click(),
  ]);
  expect(await response.json()).toMatchObject({
    data: { node: { __typename: 'Person', firstName: names[4] } },
  });
  expect(await shown(backward.page, 137)).toEqual(names);
});

test('lists below objects are paged in both directions, and records of two types with one id are kept apart', async () => {
  const upstream = makeExecutableSchema(VACANCIES, {
    Query: { vacancy: (_: unknown, { id }: { id: string }) => ({ id, name: `Vacancy ${id}` }) },
    Vacancy: { candidates: (_: unknown, args: PageArgs) => pageOf(CANDIDATES, args, 3) },
  });
  await using gateway = await startGatewayOverSandbox(
    { schema: upstream },
    { config, snapshot: VACANCIES },
  );
  const component = readFileSync('test/clients/relay/vacancies-page.js', 'utf8');
  const app = compileRelayApp(
    { 'vacancies-page.js': component },
    { schema: printSchema(gateway.gateway.served.schema), esModules: true },
  );
  const bundle = await bundleRelayPage('test/clients/relay/vacancies-page.js', app.artifacts);
  app.remove();
  await using opened = await open(bundle, gateway, {});
  const { page } = opened;
  await shown(page, 4);
  expect(await page.locator('main').textContent()).toBe(
    'Vacancy 1Candidate 1Candidate 2Vacancy 2Candidate 6Candidate 7',
  );
  await loadMore(page, { list: 0, from: 4, by: 3 });
  await loadMore(page, { list: 0, from: 7, by: 3 });
  await loadMore(page, { list: 1, from: 9, by: 5, backward: true });
  const all = CANDIDATES.map(({ name }) => name);
  expect(await shown(page, 14)).toEqual([...all, ...all]);
  expect(await page.locator('b').allTextContents()).toEqual(['Vacancy 1', 'Vacancy 2']);
});

const VACANCIES = `
  type Vacancy { id: ID! name: String! candidates(first: Int, after: String): CandidatePage! }
  type Candidate { id: ID! name: String! }
  type CandidatePage { items: [Candidate!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { vacancy(id: ID!): Vacancy }
`;
const CANDIDATES = [1, 2, 3, 4, 5, 6, 7].map((id) => ({ id, name: `Candidate ${id}` }));

interface Opened extends AsyncDisposable {
  readonly page: Page;
}

/** Opens a page, which sends its requests to the gateway over a socket. */
async function open(bundle: string, gateway: TestGateway, parameters: object): Promise<Opened> {
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  // Chromium asks its user before a page may connect to this machine.
  const page = await browser.newPage({ permissions: ['local-network-access'] });
  await page.route(`${ORIGIN}/`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<!doctype html><body></body>' }),
  );
  const hash = JSON.stringify({ gateway: `${server.url}/graphql`, ...parameters });
  await page.goto(`${ORIGIN}/#${encodeURIComponent(hash)}`);
  await page.addScriptTag({ content: bundle });
  return {
    page,
    [Symbol.asyncDispose]: async () => {
      await page.close();
      await server.close();
    },
  };
}

interface More {
  /** The index of the list. */
  readonly list: number;
  /** How many records are shown before, in all lists. */
  readonly from: number;
  readonly by: number;
  readonly backward?: boolean;
}

async function loadMore(page: Page, { list, from, by, backward = false }: More): Promise<void> {
  await shown(page, from);
  await page.evaluate(
    ({ index, count, isBackward }) => {
      const { lists } = globalThis as unknown as { lists: PaginatedList[] };
      const { loadNext, loadPrevious } = lists[index]!;
      (isBackward ? loadPrevious : loadNext)(count);
    },
    { index: list, count: by, isBackward: backward },
  );
}

/** What usePaginationFragment returns. */
interface PaginatedList {
  loadNext(this: void, count: number): unknown;
  loadPrevious(this: void, count: number): unknown;
}

/** Waits until this many records are shown. @returns their names */
async function shown(page: Page, count: number): Promise<string[]> {
  await page
    .locator('li')
    .nth(count - 1)
    .waitFor();
  return page.locator('li').allTextContents();
}
