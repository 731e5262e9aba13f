import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parse, print } from 'graphql';
import { describe, expect, onTestFinished, test } from 'vitest';
import { examples } from '../../src/http/graphiql/examples.ts';
import { createGraphiql, type GraphiqlOptions } from '../../src/http/graphiql/graphiql.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
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
    await using server = await listen(gateway.gateway.handler);
    const browser = await openBrowser();
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    page.setDefaultTimeout(patience / 2);
    const requests = recordRequests(page);
    const complaints = recordComplaints(page);
    await page.goto(server.origin);
    expect(page.url()).toBe(`${server.origin}/graphql`);
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
      !/^(data|blob):/.test(url) && new URL(url).origin !== server.origin;
    expect(requests.filter(isElsewhere)).toEqual([]);
    expect(complaints.filter((each) => !/401|404/.test(each))).toEqual([]);
  },
);

test('every example is answered for a caller with the scope read', async () => {
  const apiKeys = [entryFor(KEY, 'portal', 'read')];
  const config = { auth: { apiKeys, jwt: undefined } };
  await using gateway = await startGatewayOverSandbox({ persons: 2_345 }, { config });
  const { adapters, entities } = gateway.gateway.offered;
  for (const { query, variables = '{}' } of examples({ adapters, entities })) {
    const headers = { 'x-api-key': KEY };
    const sent = JSON.parse(variables) as Record<string, unknown>;
    const { data, errors } = await gateway.ask(query, sent, { headers });
    expect([Object.keys(data).length, errors]).toEqual([1, undefined]);
  }
});

function isProbe(url: string, sent: string | null): boolean {
  return url.endsWith('/graphql') && sent?.includes('{ __typename }') === true;
}

describe('the page', () => {
  test('the page is not served if GraphiQL is off', async () => {
    await using gateway = await startGatewayOverSandbox({}, { config: { graphiql: false } });
    const response = await gateway.fetch('/graphql', OPEN);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      400,
      'application/json; charset=utf-8',
    ]);
  });

  test('the page says that the people of the sandbox are made up, and no page of a service does', async () => {
    await using sandbox = await startSandboxInside();
    expect(await (await sandbox.fetch('/graphql', OPEN)).text()).toContain(
      'the people are made up',
    );
    await using server = await serve();
    expect(await (await fetch(server.url, OPEN)).text()).not.toContain('made up');
  });

  test('the page is sent compressed, and only once', async () => {
    await using server = await serve();
    const first = await fetch(server.url, OPEN);
    const page = await first.text();
    expect(first.headers.get('content-encoding')).toBe('gzip');
    expect(Number(first.headers.get('content-length'))).toBeLessThan(page.length / 3);
    const etag = first.headers.get('etag') ?? '';
    const withHeader = (more: object) =>
      fetch(server.url, { headers: { ...OPEN.headers, ...more } });
    const again = await withHeader({ 'if-none-match': etag });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const plain = await withHeader({ 'accept-encoding': 'gzip;q=0, identity' });
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(await plain.text()).toBe(page);
  });

  test('the page allows neither frames of other sites nor pictures and requests elsewhere', async () => {
    await using server = await serve();
    const { headers } = await fetch(server.url, OPEN);
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
    const html = await (await fetch(server.url, OPEN)).text();
    expect(html).toContain('query Nasty');
    expect(html).not.toMatch(/<script>window\.broken|<!--<script>|<img src=x/);
  });
});

describe('examples', () => {
  test('the examples request a list in each of its forms, under the names that are served', () => {
    const [persons] = served.adapters;
    const { entities } = served;
    const made = examples({ adapters: [persons!, { ...persons!, name: 'vacancies' }], entities });
    expect(made.map(({ query }) => body(query))).toEqual([
      'query AllPersons { allPersons(limit: 500) @stream(initialCount: 50) { id firstName } }',
      'query Persons { persons(first: 2) { items { id firstName } pageInfo { first hasNextPage endCursor } } }',
      'query PersonsConnection($first: Int, $after: String) { personsConnection(first: $first, after: $after) { totalCount edges { cursor node { id firstName } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }',
      'query LastPersons { personsConnection(last: 3) { totalCount edges { cursor node { id firstName } } pageInfo { hasPreviousPage startCursor } } }',
      'query Person($id: ID!) { person(id: $id) { id firstName } }',
    ]);
    expect(JSON.parse(made[2]?.variables ?? '')).toEqual({ first: 120, after: null });
    expect(JSON.parse(made[4]?.variables ?? '')).toEqual({ id: '1' });
    for (const { query } of made) expect(query).toMatch(/^# .*\n# /);
    expect(made[1]!.query).toContain('Similar lists: vacancies.');
  });

  test('there is an example without a list, and with one that has no other forms', () => {
    const [persons] = served.adapters;
    const countries = { ...persons!, all: undefined, connection: undefined };
    const alone = examples({ adapters: [countries], entities: [] });
    expect(alone.map(({ query }) => query)).toEqual([
      expect.stringMatching(/^# Welcome![^]*persons\(first: 2\)/),
    ]);
    const without = examples({ adapters: [], entities: [] });
    expect(without.map(({ query }) => body(query))).toEqual(['query Welcome { __typename }']);
  });
});

function body(query: string): string {
  return print(parse(query)).replaceAll(/\s+/g, ' ').trim();
}

const served = servedOffline(documentedSdl);

const usual = { enabled: true, examples: examples(served) };
/** Shared, because building and compressing its nine megabytes takes most of the time. */
const usualPage = createGraphiql(usual).page;

async function serve(options?: Partial<GraphiqlOptions>) {
  const page = options ? createGraphiql({ ...usual, ...options }).page : usualPage;
  const server = await listen(handlerOf([page]));
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
