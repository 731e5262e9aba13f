import { readFileSync } from 'node:fs';
import { parse, print } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { examples } from '../../src/http/graphiql/examples.ts';
import { createGraphiql } from '../../src/http/graphiql/graphiql.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { startSandboxInside } from '../support/gateway/sandbox-inside.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';
import { handlerOf } from '../support/gateway/stages.ts';

const KEY = 'rsk_of-the-portal';
const OPEN = {
  headers: { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' },
};

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
