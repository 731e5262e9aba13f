import { createHash } from 'node:crypto';
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { createClient, createRequest, fetchExchange } from '@urql/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { post, startFront, type Body, type Front } from './front.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
/** As Apollo Client and urql write it. */
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
const NOT_FOUND = refused('PERSISTED_QUERY_NOT_FOUND');
const ALL = ['both', 'only'] as const;
const ONLY = ['only'] as const;
const ONLY_TRUSTED = refused('FORBIDDEN', 'This gateway accepts only trusted documents');

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
  ['an unknown id', { id: 'nothing' }, NOT_FOUND],
  ['an unknown hash', ofApollo('a'), NOT_FOUND],
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

describe('automatic persisted queries', () => {
  const BOTH = 'POST hash and text';
  test.each<[string, 'none' | 'both', useGet: boolean, sent: string[]]>([
    ['none is supported', 'none', false, ['POST hash', 'POST text', 'POST text', 'POST text']],
    [
      'none is supported, and by GET',
      'none',
      true,
      ['GET hash', 'POST text', 'POST text', 'POST text'],
    ],
    [
      'there are trusted documents, of which each is found by its hash',
      'both',
      false,
      // The text of the other one is not kept.
      ['POST hash', 'POST hash', BOTH, 'POST hash', BOTH],
    ],
  ])('Apollo Client sends the text of other operations where %s', async (_, to, useGet, sent) => {
    const { gateway } = fronts[to]!;
    const requests: string[] = [];
    const fetchAs: typeof fetch = (uri, init) => {
      const text = decodeURIComponent((init?.body ?? uri) as string);
      const [hasText, hasHash] = [text.includes('candidate('), text.includes('sha256Hash')];
      const what = [...(hasHash ? ['hash'] : []), ...(hasText ? ['text'] : [])].join(' and ');
      requests.push(`${init?.method} ${what}`);
      return gateway.fetch(uri as string, init);
    };
    const client = new ApolloClient({
      link: new PersistedQueryLink({ sha256, useGETForHashedQueries: useGet }).concat(
        new HttpLink({ uri: '/graphql', fetch: fetchAs, headers: { 'x-api-key': 'portal' } }),
      ),
      cache: new InMemoryCache(),
    });
    for (const text of [TEXT, UNKNOWN, UNKNOWN]) {
      const query = gql(text);
      expect(await client.query({ query, fetchPolicy: 'network-only' })).toEqual(ANSWER);
    }
    expect(requests).toEqual(sent);
    client.stop();
  });

  test.each<['none' | 'both', string]>([
    ['none', 'PersistedQueryNotSupported'],
    ['both', 'PersistedQueryNotFound'],
  ])(
    'urql, which goes by the message, sends the text when the hash is not found (documents: %s)',
    async (to, message) => {
      const { gateway } = fronts[to]!;
      const client = createClient({
        url: 'http://localhost/graphql',
        preferGetMethod: false,
        exchanges: [fetchExchange],
        fetchOptions: { headers: { 'x-api-key': 'portal' } },
        fetch: (_url, init) => gateway.fetch('/graphql', init),
      });
      const hashed = { version: 1 as const, sha256Hash: sha256(UNKNOWN) };
      const ask = (persistedQuery: typeof hashed & { miss?: boolean }) =>
        client.executeQuery(createRequest(UNKNOWN, {}, { persistedQuery })).toPromise();
      const { error } = await ask(hashed);
      expect(error?.graphQLErrors.map((each) => each.message)).toEqual([message]);
      expect((await ask({ ...hashed, miss: true })).data).toEqual(ANSWER.data);
    },
  );

  test('a miss has status 200 and is not kept by caches, as the protocol has it', async () => {
    const { url } = fronts.none!;
    const extensions = JSON.stringify(ofApollo(HASH).extensions);
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      const response = await fetch(`${url}/graphql?${new URLSearchParams({ extensions })}`, {
        headers: { accept, 'x-api-key': 'portal' },
      });
      const kept = response.headers.get('cache-control');
      expect([response.status, kept]).toEqual([200, 'private, no-store']);
      const { errors } = (await response.json()) as Body;
      expect(errors).toMatchObject([{ extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }]);
    }
  });
});
