// What needs a browser: GraphiQL, and the pages of examples/relay.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Browser } from 'playwright-core';
import { build } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import fetchable from '../../examples/relay/gateway.config.ts';
import { startIssuer } from '../http/auth/issuer.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { openBrowser } from '../support/clients/browser.ts';
import { startFront, type Front } from '../support/gateway/front.ts';

const KEY = 'key-of-the-page';
let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser?.close());

const TABS = ['AllPersons', 'Persons', 'PersonsConnection'];

test('GraphiQL opens with a valid credential, runs an example with it, stores it nowhere, and asks only the gateway', async () => {
  await using issuer = await startIssuer();
  const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: issuer.jwt };
  await using front = await startFront({}, { config: { auth } });
  const page = await browser.newPage();
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await page.goto(front.url);
  expect(page.url()).toBe(`${front.url}/graphql`);
  expect(await page.getByText('made up').count()).toBe(0);
  const tabs = page.locator('.graphiql-tab-button');

  const field = page.getByLabel('Credential');
  await page.getByText('answers only callers with an API key or a bearer token').waitFor();
  const sentWith = async (credential: string) => {
    const sent = page.waitForRequest((each) => isProbe(each.url(), each.postData()));
    await field.fill(credential);
    await field.press('Enter');
    const { authorization, 'x-api-key': key } = await (await sent).allHeaders();
    return { authorization, key };
  };
  const token = { authorization: 'Bearer eyJh.eyJz.sig', key: undefined };
  // No header can have an ellipsis.
  expect(await sentWith('rsk_…')).toEqual({});
  expect(await sentWith('Bearer eyJh.eyJz.sig')).toEqual(token);
  await page.getByText('no credential that is valid').waitFor();
  expect(await tabs.count()).toBe(0);
  expect(await sentWith(KEY)).toEqual({ authorization: undefined, key: KEY });
  await page.getByText('Sent with every request of this page').waitFor();
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
  await page.locator('.graphiql-doc-explorer').getByText('Query', { exact: true }).waitFor();

  expect(await tabs.allTextContents()).toEqual(TABS);
  await page.locator('.graphiql-execute-button').click();
  const result = page.locator('.graphiql-response .view-lines');
  await result.getByText('"allPersons"').first().waitFor();

  const kept = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]),
  );
  expect(kept).not.toContain(KEY);
  const isElsewhere = (url: string) =>
    !/^(data|blob):/.test(url) && new URL(url).origin !== front.url;
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

describe('examples/relay', () => {
  /** The origin of the application: the test itself answers with its page. */
  const ORIGIN = 'http://localhost:3000';
  const credential = { 'x-api-key': KEY };
  let front: Front;
  let bundle: string;
  beforeAll(async () => {
    const auth = { apiKeys: [entryFor(KEY, 'page', 'read', 'drain')], jwt: undefined };
    front = await startFront(
      { schema: 'rich' },
      {
        snapshot: readFileSync('schema/rich.graphql', 'utf8'),
        config: { corsOrigins: [ORIGIN], auth },
        additions: fetchable,
      },
    );
    bundle = await bundledPage();
  });
  afterAll(() => front[Symbol.asyncDispose]());

  const asked = async <Data>(query: string) =>
    (await front.ask<Data>(query, {}, { headers: credential })).data;

  /** Opens the page with one of its lists, from the end that the variables name. */
  async function open(
    shows: 'People' | 'Vacancies',
    variables: { first: number } | { last: number },
  ) {
    // Chromium asks its user before a page may connect to this machine.
    const page = await browser.newPage({ permissions: ['local-network-access'] });
    await page.route(`${ORIGIN}/`, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><body></body>' }),
    );
    const settings = { gateway: `${front.url}/graphql`, credential, shows, variables };
    await page.goto(`${ORIGIN}/#${encodeURIComponent(JSON.stringify(settings))}`);
    await page.addScriptTag({ content: bundle });
    /** Waits until this many records are shown. @returns their ids */
    const shown = async (count: number) => {
      const records = page.locator('li');
      await records.nth(count - 1).waitFor();
      return records.allTextContents();
    };
    /** Loads more records of a list, once this many are shown of all lists. */
    const loadMore = async (list: number, { from, by }: { from: number; by: number }) => {
      await shown(from);
      const load = 'first' in variables ? 'loadNext' : 'loadPrevious';
      await page.evaluate(`lists[${list}].${load}(${by})`);
    };
    return { page, shown, loadMore, [Symbol.asyncDispose]: () => page.close() };
  }

  test.each([{ first: 60 }, { last: 60 }])('pages through a list: %j', async (variables) => {
    await using people = await open('People', variables);
    for (const from of [60, 120]) await people.loadMore(0, { from, by: 60 });
    const { allPersons } = await asked<{ allPersons: Identified[] }>('{ allPersons { id } }');
    expect(await people.shown(137)).toEqual(allPersons.map(({ id }) => id));
  });

  test('keeps the people that it shows when a page fails, and loads it again', async () => {
    await using people = await open('People', { first: 60 });
    await people.shown(60);
    const json = {
      data: { personsConnection: null },
      errors: [{ message: 'Try again.', path: ['personsConnection'] }],
    };
    const headers = { 'access-control-allow-origin': ORIGIN };
    await people.page.route(`${front.url}/graphql`, (route) => route.fulfill({ json, headers }));
    const completed = await people.page.evaluate(
      'new Promise((end) => lists[0].loadNext(60, { onComplete: (error) => end(String(error)) }))',
    );
    expect(completed).toContain('Try again.');
    await people.page.unrouteAll();
    await people.loadMore(0, { from: 60, by: 60 });
    expect(await people.shown(120)).toHaveLength(120);
  });

  test('pages through the candidates of each vacancy in both directions, by fetch__Vacancy', async () => {
    const { allVacancies } = await asked<{ allVacancies: Vacancy[] }>(
      '{ allVacancies(limit: 2) { id allCandidates { id } } }',
    );
    const [first, second] = allVacancies.map((vacancy) =>
      vacancy.allCandidates.map(({ id }) => `${vacancy.id} ${id}`),
    );
    expect([first!.length, second!.length]).toEqual([120, 26]);

    await using forward = await open('Vacancies', { first: 20 });
    await forward.shown(40);
    const [response] = await Promise.all([
      forward.page.waitForResponse((reply) => reply.request().method() === 'POST'),
      forward.loadMore(0, { from: 40, by: 100 }),
    ]);
    expect(await response.json()).toMatchObject({
      data: { fetch__Vacancy: { id: '1', candidatesConnection: { edges: { length: 100 } } } },
    });
    await forward.loadMore(1, { from: 140, by: 6 });
    expect(await forward.shown(146)).toEqual([...first!, ...second!]);

    await using backward = await open('Vacancies', { last: 20 });
    await backward.loadMore(0, { from: 40, by: 30 });
    await backward.loadMore(1, { from: 70, by: 6 });
    expect(await backward.shown(76)).toEqual([...first!.slice(-50), ...second!]);
  });
});

interface Identified {
  readonly id: string;
}

interface Vacancy extends Identified {
  readonly allCandidates: readonly Identified[];
}

/** Bundles a React page for a browser, as an application's build does: with Relay's tags replaced by their artifacts. */
async function bundledPage(): Promise<string> {
  const { output } = await build({
    input: 'test/clients/relay-page.js',
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
