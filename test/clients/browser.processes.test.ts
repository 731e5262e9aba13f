// What needs a browser: GraphiQL, and the pages of examples/relay.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { build } from 'rolldown';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import fetchable from '../../examples/relay/gateway.config.ts';
import { listen } from '../../src/http/listen.ts';
import { startIssuer } from '../http/auth/issuer.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { openBrowser } from '../support/clients/browser.ts';
import type { TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';

/** The origin of the application: the test itself answers with its page. */
const ORIGIN = 'http://localhost:3000';
const KEY = 'key-of-the-page';
const sentByPage = { 'x-api-key': KEY };
const config = {
  corsOrigins: [ORIGIN],
  auth: {
    apiKeys: [entryFor(KEY, 'page', 'read', 'drain')],
    jwt: undefined,
  },
};

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser?.close());

const TABS = ['AllPersons', 'Persons', 'PersonsConnection', 'LastPersons', 'Person'];

test('GraphiQL opens with a valid credential, runs an example with it, stores it nowhere, and asks only the gateway', async () => {
  await using issuer = await startIssuer();
  const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: issuer.jwt };
  await using gateway = await startGatewayOverService({}, { config: { auth } });
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const page = await browser.newPage();
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await page.goto(server.url);
  expect(page.url()).toBe(`${server.url}/graphql`);
  expect(await page.getByText('made up').count()).toBe(0);
  const tabs = page.locator('.graphiql-tab-button');

  const field = page.getByLabel('API key or bearer token');
  await page.getByText('answers only callers with an API key or a bearer token').waitFor();
  const sentWith = async (credential: string) => {
    const sent = page.waitForRequest((each) => isProbe(each.url(), each.postData()));
    await field.fill(credential);
    await field.press('Enter');
    const { authorization, 'x-api-key': key } = await (await sent).allHeaders();
    return { authorization, key };
  };
  const token = { authorization: 'Bearer eyJh.eyJz.sig', key: undefined };
  expect(await sentWith('Bearer eyJh.eyJz.sig')).toEqual(token);
  await page.getByText('does not accept this API key or bearer token').waitFor();
  expect(await tabs.count()).toBe(0);
  expect(await sentWith(KEY)).toEqual({ authorization: undefined, key: KEY });
  await page.getByText('Sent with every request of this page').waitFor();
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
  await page.locator('.graphiql-doc-explorer').getByText('Query', { exact: true }).waitFor();

  expect(await tabs.allTextContents()).toEqual(TABS);
  await page.locator('.graphiql-execute-button').click();
  const result = page.locator('.graphiql-response .view-lines');
  await result.getByText('"allPersons"').first().waitFor();

  const picture = page.waitForRequest(/\/pictures\//);
  await page.evaluate(() => fetch('/pictures/ada.png'));
  expect(await (await picture).allHeaders()).not.toHaveProperty('x-api-key');
  const kept = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]),
  );
  expect(kept).not.toContain(KEY);
  const isElsewhere = (url: string) =>
    !/^(data|blob):/.test(url) && new URL(url).origin !== server.url;
  expect(requests.filter(isElsewhere)).toEqual([]);
  expect(complaints.filter((each) => !/401|404/.test(each))).toEqual([]);
});

function isProbe(url: string, sent: string | null): boolean {
  return url.endsWith('/graphql') && sent?.includes('{ __typename }') === true;
}

test('the artifacts of examples/relay are those that the compiler writes', () => {
  const compiler = resolve('node_modules/.bin/relay-compiler');
  const options = { cwd: 'examples/relay', stdio: 'pipe' } as const;
  expect(() => execFileSync(compiler, ['--validate'], options)).not.toThrow();
});

test('examples/relay pages through a list in both directions', async () => {
  await using gateway = await startGatewayOverService({ persons: 137 }, { config });
  const bundle = await bundleRelayPage('test/clients/relay/people-page.js');
  const names = gateway.service.persons.all().map(({ firstName }) => firstName);

  await using forward = await open(bundle, gateway, { first: 60 });
  for (const count of [60, 120]) await loadMore(forward.page, { list: 0, from: count, by: 60 });
  expect(await shown(forward.page, 137)).toEqual(names);

  await using backward = await open(bundle, gateway, { last: 60 });
  for (const count of [60, 120])
    await loadMore(backward.page, { list: 0, from: count, by: 60, backward: true });
  expect(await shown(backward.page, 137)).toEqual(names);
});

test('examples/relay pages through the candidates of each vacancy in both directions, by fetch__Vacancy', async () => {
  await using gateway = await startVacancies();
  const bundle = await bundleRelayPage('test/clients/relay/vacancies-page.js');
  const { data } = await gateway.ask<{ allVacancies: Vacancy[] }>(
    '{ allVacancies(limit: 2) { id allCandidates { id person { firstName } } } }',
    {},
    { headers: sentByPage },
  );
  const [first, second] = data.allVacancies.map(({ id, allCandidates }) =>
    allCandidates.map((candidate) => `${id} ${candidate.id} ${candidate.person.firstName}`),
  );
  expect([first!.length, second!.length]).toEqual([120, 26]);

  await using forward = await open(bundle, gateway, { first: 20 });
  await shown(forward.page, 40);
  const [response] = await Promise.all([
    forward.page.waitForResponse((reply) => reply.request().method() === 'POST'),
    loadMore(forward.page, { list: 0, from: 40, by: 100 }),
  ]);
  expect(await response.json()).toMatchObject({
    data: { fetch__Vacancy: { id: '1', candidatesConnection: { edges: { length: 100 } } } },
  });
  await loadMore(forward.page, { list: 1, from: 140, by: 6 });
  expect(await shown(forward.page, 146)).toEqual([...first!, ...second!]);

  await using backward = await open(bundle, gateway, { last: 20 });
  await loadMore(backward.page, { list: 0, from: 40, by: 30, backward: true });
  await loadMore(backward.page, { list: 1, from: 70, by: 6, backward: true });
  expect(await shown(backward.page, 76)).toEqual([...first!.slice(-50), ...second!]);
});

/** Bundles a React page for a browser, as an application's build does: with Relay's tags replaced by their artifacts. */
async function bundleRelayPage(entry: string): Promise<string> {
  const { output } = await build({
    input: entry,
    platform: 'browser',
    write: false,
    logLevel: 'silent',
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    resolve: { modules: [resolve('node_modules')], extensions: ['.ts', '.js'] },
    plugins: [{ name: 'relay', transform: withArtifacts }],
    output: { format: 'iife' },
  });
  return output[0].code;
}

const TAG = /graphql`\s*(?:query|fragment|mutation)\s+(\w+)[^`]*`/g;

function withArtifacts(code: string): string {
  const imports = Array.from(
    code.matchAll(TAG),
    ([, name]) => `import artifact_${name} from './__generated__/${name}.graphql';\n`,
  );
  return imports.join('') + code.replaceAll(TAG, (_, name: string) => `artifact_${name}`);
}

interface Vacancy {
  readonly id: string;
  readonly allCandidates: readonly {
    readonly id: string;
    readonly person: { firstName: string };
  }[];
}

/** A gateway with the own field of examples/relay, over a service with vacancies. */
function startVacancies() {
  return startGatewayOverService(
    { schema: 'rich' },
    { snapshot: readFileSync('schema/rich.graphql', 'utf8'), config, additions: fetchable },
  );
}

interface Opened extends AsyncDisposable {
  readonly page: Page;
}

/** Opens a page, which sends its requests to the gateway over a socket. */
async function open(bundle: string, gateway: TestGateway, size: object): Promise<Opened> {
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  // Chromium asks its user before a page may connect to this machine.
  const page = await browser.newPage({ permissions: ['local-network-access'] });
  await page.route(`${ORIGIN}/`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<!doctype html><body></body>' }),
  );
  const hash = JSON.stringify({ gateway: `${server.url}/graphql`, credential: sentByPage, size });
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
