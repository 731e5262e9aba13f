import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryFor } from '../../support/gateway/api-key.ts';
import { post, startFront, type Body, type Front } from '../front.ts';

const TEXT = 'query Me($id: Int!) { candidate(id: $id) { id } }';
const PAIR = 'query One { me { id } } query Two { me { name } }';
const HASH = createHash('sha256').update(TEXT).digest('hex');
const MAP = {
  [HASH]: TEXT,
  pair: PAIR,
  nameless: '{ me { id } }',
  'sha256:abc': '{ me { id } }',
  rename: 'mutation Rename { rename(id: 1, name: "New") { id } }',
};
const APOLLO = {
  format: 'apollo-persisted-query-manifest',
  version: 1,
  operations: Object.entries(MAP).map(([id, body]) => ({ id, name: 'Me', type: 'query', body })),
};
const ANSWER = { data: { candidate: { id: 7 } } };
const byApollo = { persistedQuery: { version: 1, sha256Hash: HASH } };

const apiKeys = [
  entryFor('gate', 'gate', 'read', 'router'),
  entryFor('portal', 'portal', 'read', 'write'),
];
const auth = { apiKeys, jwt: undefined };
const config = { auth, mutations: 'all' as const };

/** A gateway that accepts texts too. */
let both: Front;
let only: Front;
beforeAll(async () => {
  both = await startFront({ config, trustedDocuments: MAP });
  only = await startFront({
    config: { ...config, trustedDocumentsOnly: true, introspection: false },
    trustedDocuments: APOLLO,
  });
});
afterAll(async () => {
  await both[Symbol.asyncDispose]();
  await only[Symbol.asyncDispose]();
});

const variables = { id: 7 };
const ASKED: [string, object][] = [
  ['documentId', { documentId: HASH, variables }],
  ['documentId with the name of its hash', { documentId: `sha256:${HASH}`, variables }],
  ['extensions.persistedQuery, as of Apollo', { extensions: byApollo, variables }],
  ['doc_id, as of Relay', { doc_id: HASH, variables }],
  ['id', { id: HASH, variables }],
];

describe('a trusted document is executed', () => {
  test.each(ASKED)('with POST and GET and %s', async (_, body) => {
    const parameters = Object.entries(body).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]);
    const address = `/graphql?${new URLSearchParams(Object.fromEntries(parameters))}`;
    for (const front of [both, only]) {
      expect(await send(front, body)).toEqual(ANSWER);
      const inAddress = await fetch(front.url + address, { headers: { 'x-api-key': 'portal' } });
      expect(await inAddress.json()).toEqual(ANSWER);
    }
  });

  test('a trusted document is counted under the id of its manifest, in whatever form the request has it', async () => {
    for (const documentId of ['abc', 'sha256:abc']) await send(only, { documentId });
    const metrics = await only.gateway.gateway.metrics.text();
    expect(metrics).toContain('{operation="sha256:abc",code="OK"}');
    expect(metrics).not.toContain('{operation="abc"');
  });

  test('the operationName selects one of its operations', async () => {
    const body = { documentId: 'pair', operationName: 'Two' };
    expect((await send(only, body)).data).toEqual({ me: { name: expect.any(String) as string } });
    const { errors } = await send(only, { documentId: 'pair' });
    expect(errors![0]!.message).toContain('there is One, Two.');
  });

  test('the rules for other operations apply to it', async () => {
    expect((await send(only, { documentId: 'rename' }, 'gate')).errors).toMatchObject([
      { extensions: { code: 'FORBIDDEN' } },
    ]);
    const headers = { 'x-api-key': 'portal' };
    const inAddress = await fetch(`${only.url}/graphql?documentId=rename`, { headers });
    expect(inAddress.status).toBe(405);
    expect(only.sent.renames).toBe(0);
  });
});

describe('a request is refused', () => {
  test.each([
    ['an unknown id', { documentId: 'nothing' }, 400, 'PERSISTED_QUERY_NOT_FOUND'],
    [
      'an unknown hash, as of Apollo',
      { extensions: { persistedQuery: { version: 1, sha256Hash: 'a' } } },
      200,
      'PERSISTED_QUERY_NOT_FOUND',
    ],
    ['neither an id nor a text', { variables: {} }, 400, 'BAD_USER_INPUT'],
  ])('%s', async (_, body, status, code) => {
    for (const front of [both, only]) {
      const response = await fetch(`${front.url}/graphql`, post(body, { 'x-api-key': 'portal' }));
      expect(response.status).toBe(status);
      const { errors } = (await response.json()) as Body;
      expect(errors).toMatchObject([{ extensions: { code } }]);
    }
  });

  test('a hash that Apollo Client sends with a query is not registered', async () => {
    const query = '{ me { name } }';
    const sha256Hash = createHash('sha256').update(query).digest('hex');
    const extensions = { persistedQuery: { version: 1, sha256Hash } };
    expect((await send(both, { query, extensions })).data).toHaveProperty('me');
    const { errors } = await send(both, { extensions });
    expect(errors![0]!.message).toBe('PersistedQueryNotFound');
    expect((await send(only, { query, extensions })).errors).toMatchObject([
      { extensions: { code: 'FORBIDDEN' } },
    ]);
  });

  test.each(['{ me { id } }', TEXT, '{', '{ __schema { types { name } } }'])(
    'with TRUSTED_DOCUMENTS_ONLY a text is refused before it is parsed: %s',
    async (query) => {
      for (const more of [{}, { documentId: 'nameless' }, { extensions: byApollo }]) {
        const { data, errors } = await send(only, { query, ...more });
        expect(data).toBeUndefined();
        expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
        expect(errors![0]!.message).toMatch(/^This gateway accepts only trusted documents/);
      }
    },
  );

  test('a router with its credential may send texts', async () => {
    const query =
      '{ _entities(representations: [{ __typename: "Candidate", id: 7 }]) { __typename } }';
    expect(await send(only, { query }, 'gate')).toEqual({
      data: { _entities: [{ __typename: 'Candidate' }] },
    });
  });
});

test('the name of a trusted operation is logged, and no other name', async () => {
  const { fetch: ask, logged } = both.gateway;
  const nameOf = async (body: object) => {
    await ask('/graphql', post(body, { 'x-api-key': 'portal' }));
    return logged.findLast(({ msg }) => msg === 'request')!['operation'];
  };
  expect(await nameOf({ documentId: HASH, variables })).toBe('Me');
  expect(await nameOf({ documentId: 'pair', operationName: 'Two' })).toBe('Two');
  expect(await nameOf({ documentId: 'nameless' })).toBe('nameless');
  expect(await nameOf({ documentId: 'pair', operationName: 'Mine' })).toBe('pair');
  expect(await nameOf({ documentId: 'Mine' })).toBeUndefined();
  expect(await nameOf({ query: TEXT, operationName: 'Me', variables })).toBeUndefined();
});

async function send(front: Front, body: object, key = 'portal'): Promise<Body> {
  return (await (
    await fetch(`${front.url}/graphql`, post(body, { 'x-api-key': key }))
  ).json()) as Body;
}
