import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { examples } from '../../src/http/graphiql/examples.ts';
import { createGraphiql } from '../../src/http/graphiql/graphiql.ts';
import { listen } from '../../src/http/listen.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { startSandboxInside } from '../support/gateway/sandbox-inside.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';
import { handlerOf } from '../support/gateway/stages.ts';
import { startIssuer } from './auth/issuer.ts';
import { openBrowser, recordComplaints, recordRequests } from '../support/clients/browser.ts';

const patience = 60_000;
const TABS = ['AllPersons', 'Persons', 'PersonsConnection', 'LastPersons', 'Person'];
const KEY = 'rsk_of-the-portal';
const OPEN = {
  headers: { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' },
};

test(
  'GraphiQL in a browser opens with a valid credential, runs an example with it, stores it nowhere, and asks only the gateway',
  { timeout: patience },
  async () => {
    await using issuer = await startIssuer();
    const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: issuer.jwt };
    await using gateway = await startGatewayOverSandbox({}, { config: { auth } });
    const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
    onTestFinished(() => server.close());
    const browser = await openBrowser();
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    page.setDefaultTimeout(patience / 2);
    const requests = recordRequests(page);
    const complaints = recordComplaints(page);
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
  },
);

function isProbe(url: string, sent: string | null): boolean {
  return url.endsWith('/graphql') && sent?.includes('{ __typename }') === true;
}

const results = readFileSync('schema/results.graphql', 'utf8');

test.each([
  ['the documented service', {}, {}],
  ['a service whose fields return results', { schema: 'results' as const }, { snapshot: results }],
])(
  'every example is answered for a caller with the scope read, by %s',
  async (_, service, options) => {
    const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: undefined };
    await using gateway = await startGatewayOverSandbox(service, { ...options, config: { auth } });
    const { adapters, entities } = gateway.gateway.offered;
    for (const { query, variables = '{}' } of examples({ adapters, entities })) {
      const headers = { 'x-api-key': KEY };
      const sent = JSON.parse(variables) as Record<string, unknown>;
      const { data, errors } = await gateway.ask(query, sent, { headers });
      expect(errors).toBeUndefined();
      expect(JSON.stringify(data)).toMatch(/"person":null|"name":"|"firstName":"/);
    }
  },
);

describe('the page', () => {
  let sandbox: Pick<TestGateway, 'fetch'> & AsyncDisposable;
  beforeAll(async () => {
    sandbox = await startSandboxInside();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());
  const open = (more: Record<string, string> = {}) =>
    sandbox.fetch('/graphql', { headers: { ...OPEN.headers, ...more } });

  test('the page is not served if GraphiQL is off', async () => {
    await using gateway = await startGatewayOverSandbox({}, { config: { graphiql: false } });
    const { status, headers } = await gateway.fetch('/graphql', OPEN);
    expect([status, headers.get('content-type')]).toEqual([400, 'application/json; charset=utf-8']);
  });

  test('the page is sent compressed, and only once, and says that the people of the sandbox are made up', async () => {
    const plain = await open();
    expect(plain.headers.get('content-encoding')).toBeNull();
    const page = await plain.text();
    expect(page).toContain('the people are made up');
    const zipped = await open({ 'accept-encoding': 'gzip' });
    expect(zipped.headers.get('content-encoding')).toBe('gzip');
    expect((await zipped.arrayBuffer()).byteLength).toBeLessThan(page.length / 3);
    const refused = await open({ 'accept-encoding': 'gzip;q=0, identity' });
    expect(refused.headers.get('content-encoding')).toBeNull();
    const again = await open({ 'if-none-match': plain.headers.get('etag')! });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });

  test('the page allows neither frames of other sites nor pictures and requests elsewhere', async () => {
    const { headers } = await open();
    const policy = headers.get('content-security-policy')!.split('; ');
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("connect-src 'self'");
    expect(policy.filter((rule) => rule.startsWith('img-src')).join()).not.toMatch(/http|\*/);
  });

  test('the page shows examples as text, whatever they contain', async () => {
    const nasty = `</script><script>window.broken = true</script><!--<script><img src=x onerror="x">'"&`;
    const query = `# ${nasty}\nquery Nasty { __typename }`;
    const example = { query, variables: JSON.stringify({ nasty }) };
    const { page } = createGraphiql({ enabled: true, examples: [example] });
    const html = await (await handlerOf([page]).fetch('http://localhost/graphql', OPEN)).text();
    expect(html).toContain('query Nasty');
    expect(html).not.toMatch(/<script>window\.broken|<!--<script>|<img src=x/);
  });
});

test('there is an example without a list, and with one that has no other forms', () => {
  const { adapters } = servedOffline(documentedSdl);
  const countries = { ...adapters[0]!, all: undefined, connection: undefined };
  for (const [lists, example] of [
    [[countries], /^# Welcome![^]*persons\(first: 2\)/],
    [[], /__typename/],
  ] as const) {
    const made = examples({ adapters: lists, entities: [] }).map(({ query }) => query);
    expect(made).toEqual([expect.stringMatching(example)]);
  }
});
