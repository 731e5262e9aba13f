import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { post, startFront, type Front } from './front.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const TEXT = `query Me {
  candidate(id: 7) {
    id
    __typename
  }
}`;
const UNKNOWN = TEXT.replace('Me', 'Unknown');
const ANSWER = { data: { candidate: { id: 7, __typename: 'Candidate' } } };
const HASH = sha256(TEXT);
const MAP = {
  [HASH]: TEXT,
  pair: 'query One { me { id } } query Two { me { name } }',
  nameless: '{ me { id } }',
  'sha256:abc': '{ me { id } }',
  variable: 'query ($id: Int!) { candidate(id: $id) { id __typename } }',
  rename: 'mutation Rename { rename(id: 1, name: "New") { id } }',
};
const MANIFEST_OF_APOLLO = {
  format: 'apollo-persisted-query-manifest',
  version: 1,
  operations: Object.entries(MAP).map(([id, body]) => ({ id, name: 'Me', type: 'query', body })),
};
const apiKeys = [
  entryFor('gate', 'gate', 'read', 'router'),
  entryFor('portal', 'portal', 'read', 'write'),
];
const config = { auth: { apiKeys, jwt: undefined }, mutations: 'all' as const };

const fronts: { none?: Front; both?: Front; only?: Front } = {};
beforeAll(async () => {
  fronts.none = await startFront({ config });
  fronts.both = await startFront({ config, trustedDocuments: MAP });
  fronts.only = await startFront({
    config: { ...config, trustedDocumentsOnly: true, introspection: false },
    trustedDocuments: MANIFEST_OF_APOLLO,
  });
});
afterAll(async () => {
  for (const front of Object.values(fronts)) await front[Symbol.asyncDispose]();
});

const ofApollo = (sha256Hash: string) => ({
  extensions: { persistedQuery: { version: 1, sha256Hash } },
});
const refused = (code: string, message = '') => ({
  errors: [{ message: expect.stringContaining(message) as string, extensions: { code } }],
});
// Apollo Client sends the text after these codes, and urql after these messages.
const NOT_FOUND = {
  errors: [
    { message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } },
  ],
};
const NOT_SUPPORTED = {
  errors: [
    {
      message: 'PersistedQueryNotSupported',
      extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' },
    },
  ],
};
const ALL = ['both', 'only'] as const;
const ONLY = ['only'] as const;
const NONE = ['none'] as const;
const ONLY_TRUSTED = refused('FORBIDDEN', 'This gateway accepts only trusted documents');

const BOTH = { query: UNKNOWN, ...ofApollo(sha256(UNKNOWN)) };

/** What a caller sends, as a POST and as a GET, to gateways with trusted documents. */
test.each<[string, object, object, (readonly (keyof typeof fronts)[])?, key?: string]>([
  ['documentId', { documentId: HASH }, ANSWER],
  ['documentId with the name of its hash', { documentId: `sha256:${HASH}` }, ANSWER],
  ['extensions.persistedQuery, as of Apollo', ofApollo(HASH), ANSWER],
  ['doc_id, as of Relay', { doc_id: HASH }, ANSWER],
  ['id', { id: HASH }, ANSWER],
  [
    'the name of one of its operations',
    { id: 'pair', operationName: 'Two' },
    { data: { me: { name: 'Candidate 1' } } },
  ],
  ['no name for two operations', { id: 'pair' }, refused('BAD_USER_INPUT', 'there is One, Two.')],
  ['variables', { id: 'variable', variables: { id: 7 } }, ANSWER],
  ['an unknown id', { id: 'nothing' }, refused('PERSISTED_QUERY_NOT_FOUND')],
  ['an unknown hash', ofApollo('a'), NOT_FOUND],
  ['an unknown hash of Apollo and its text', BOTH, ANSWER, ['both']],
  // The text is not kept.
  ['the same hash again, alone', ofApollo(sha256(UNKNOWN)), NOT_FOUND, ['both']],
  ['a hash where there are no documents', ofApollo(HASH), NOT_SUPPORTED, NONE],
  ['a hash and its text where there are no documents', BOTH, ANSWER, NONE],
  ['neither an id nor a text', { variables: {} }, refused('BAD_USER_INPUT')],
  ['a text of the manifest', { query: TEXT }, ONLY_TRUSTED, ONLY],
  ['a text that is not parsed', { query: '{' }, ONLY_TRUSTED, ONLY],
  ['a text beside an id', { query: '{ me { id } }', id: 'nameless' }, ONLY_TRUSTED, ONLY],
  ['a text beside a hash', { query: UNKNOWN, ...ofApollo(HASH) }, ONLY_TRUSTED, ONLY],
  ['a text of a router', { query: TEXT }, ANSWER, ONLY, 'gate'],
])('a request has %s', async (_, body, expected, to = ALL, key = 'portal') => {
  const parameters = Object.entries(body).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const address = `/graphql?${new URLSearchParams(Object.fromEntries(parameters))}`;
  for (const name of to) {
    const { url } = fronts[name]!;
    const headers = { 'x-api-key': key };
    const posted = await fetch(`${url}/graphql`, post(body, headers));
    for (const response of [posted, await fetch(url + address, { headers })]) {
      expect(await response.json()).toMatchObject(expected);
    }
  }
});

test('the rules for other operations apply to trusted documents', async () => {
  const { url, sent } = fronts.only!;
  const asGate = post({ id: 'rename' }, { 'x-api-key': 'gate' });
  const answer = await fetch(`${url}/graphql`, asGate);
  expect(await answer.json()).toMatchObject(refused('FORBIDDEN'));
  const inAddress = await fetch(`${url}/graphql?id=rename`, { headers: { 'x-api-key': 'portal' } });
  expect(inAddress.status).toBe(405);
  expect(sent.renames).toBe(0);
});

test('the name of a trusted operation is logged and counted, and no other name', async () => {
  const { fetch: ask, logged, gateway } = fronts.both!.gateway;
  for (const [body, operation] of [
    [{ id: HASH }, 'Me'],
    [{ id: 'pair', operationName: 'Two' }, 'Two'],
    [{ id: 'nameless' }, 'nameless'],
    // In whatever form the request has an id.
    [{ id: 'abc' }, 'sha256:abc'],
    [{ id: 'sha256:abc' }, 'sha256:abc'],
    [{ id: 'pair', operationName: 'Mine' }, 'pair'],
    [{ id: 'Mine' }, undefined],
    [{ query: TEXT, operationName: 'Me' }, undefined],
  ] as const) {
    await ask('/graphql', post(body, { 'x-api-key': 'portal' }));
    expect(logged.findLast(({ msg }) => msg === 'request')!['operation']).toBe(operation);
  }
  const metrics = await gateway.metrics.text();
  expect(metrics).toContain('{operation="sha256:abc",code="OK"} 2');
  expect(metrics).not.toMatch(/operation="(?:abc|Mine)"/);
});

test('an unknown hash has status 200 and is not kept by caches, so that clients send the text', async () => {
  const extensions = JSON.stringify(ofApollo(HASH).extensions);
  for (const accept of ['application/json', 'application/graphql-response+json']) {
    const { url } = fronts.none!;
    const response = await fetch(`${url}/graphql?${new URLSearchParams({ extensions })}`, {
      headers: { accept, 'x-api-key': 'portal' },
    });
    expect([response.status, response.headers.get('cache-control')]).toEqual([
      200,
      'private, no-store',
    ]);
    expect(await response.json()).toMatchObject(NOT_SUPPORTED);
  }
});
