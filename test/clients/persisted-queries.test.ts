import { createHash } from 'node:crypto';
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { createClient, createRequest, fetchExchange } from '@urql/core';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const person = { __typename: 'Person', id: expect.any(String) as string };
const data = { allPersons: [person] };
/** As Apollo Client and urql write it. */
const KNOWN = `query Known {
  allPersons(limit: 1) {
    id
    __typename
  }
}`;
const fetchPolicy = 'network-only';
const UNKNOWN = KNOWN.replace('Known', 'Unknown');

test.each([false, true])(
  'Apollo Client with automatic persisted queries sends the text, and no further hash (GET: %s)',
  async (useGETForHashedQueries) => {
    await using apollo = await connectApollo({}, useGETForHashedQueries);
    const { client, sent } = apollo;
    expect(await client.query({ query: gql(KNOWN), fetchPolicy })).toEqual({ data });
    expect(await client.query({ query: gql(UNKNOWN), fetchPolicy })).toEqual({ data });
    expect(sent).toEqual([
      `${useGETForHashedQueries ? 'GET' : 'POST'} hash`,
      'POST text',
      'POST text',
    ]);
  },
);

test.each([`sha256:${sha256(KNOWN)}`, sha256(KNOWN)])(
  'Apollo Client finds a trusted document by its hash, made as %s, and sends the text of others',
  async (id) => {
    await using apollo = await connectApollo({ [id]: KNOWN });
    const { client, sent } = apollo;
    expect(await client.query({ query: gql(KNOWN), fetchPolicy })).toEqual({ data });
    expect(await client.query({ query: gql(UNKNOWN), fetchPolicy })).toEqual({ data });
    expect(sent).toEqual(['POST hash', 'POST hash', 'POST hash and text']);
  },
);

test.each([
  [undefined, 'PersistedQueryNotSupported'],
  [{ [sha256(KNOWN)]: KNOWN }, 'PersistedQueryNotFound'],
])(
  'urql, which goes by the message, sends the text when the hash is not found (documents: %j)',
  async (trustedDocuments, message) => {
    await using gateway = await startGatewayOverSandbox({}, { trustedDocuments });
    const client = createClient({
      url: 'http://localhost/graphql',
      preferGetMethod: false,
      exchanges: [fetchExchange],
      fetch: (_url, init) => gateway.fetch('/graphql', init),
    });
    const hashed = { version: 1 as const, sha256Hash: sha256(UNKNOWN) };
    const ask = (persistedQuery: typeof hashed & { miss?: boolean }) =>
      client.executeQuery(createRequest(UNKNOWN, {}, { persistedQuery })).toPromise();
    const missed = await ask(hashed);
    expect(missed.error?.graphQLErrors.map((graphQLError) => graphQLError.message)).toEqual([
      message,
    ]);
    expect((await ask({ ...hashed, miss: true })).data).toEqual(data);
  },
);

test('a miss is answered with status 200 and is not kept by caches, as the protocol has it', async () => {
  await using gateway = await startGatewayOverSandbox();
  const extensions = JSON.stringify({ persistedQuery: { version: 1, sha256Hash: sha256(KNOWN) } });
  for (const accept of ['application/json', 'application/graphql-response+json']) {
    const response = await gateway.fetch(`/graphql?${new URLSearchParams({ extensions })}`, {
      headers: { accept, 'apollo-require-preflight': 'true' },
    });
    expect([response.status, response.headers.get('cache-control')]).toEqual([
      200,
      'private, no-store',
    ]);
    expect(await response.json()).toEqual({
      errors: [
        {
          message: 'PersistedQueryNotSupported',
          extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' },
        },
      ],
    });
  }
});

async function connectApollo(
  trustedDocuments: Record<string, string>,
  useGETForHashedQueries = false,
) {
  const gateway = await startGatewayOverSandbox(
    {},
    Object.keys(trustedDocuments).length > 0 ? { trustedDocuments } : {},
  );
  const sent: string[] = [];
  const fetch: typeof globalThis.fetch = (uri, init) => {
    const text = decodeURIComponent((init?.body ?? uri) as string);
    const [hasText, hasHash] = [text.includes('allPersons'), text.includes('sha256Hash')];
    const what = [...(hasHash ? ['hash'] : []), ...(hasText ? ['text'] : [])].join(' and ');
    sent.push(`${init?.method} ${what}`);
    return gateway.fetch(uri as string, init);
  };
  const client = new ApolloClient({
    link: new PersistedQueryLink({ sha256, useGETForHashedQueries }).concat(
      new HttpLink({ uri: '/graphql', fetch, headers: { 'apollo-require-preflight': 'true' } }),
    ),
    cache: new InMemoryCache(),
  });
  return {
    client,
    sent,
    [Symbol.asyncDispose]: async () => {
      client.stop();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
