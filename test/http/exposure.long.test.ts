import { getIntrospectionQuery } from 'graphql';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { post, startFront, type Body } from './front.ts';

const BROWSER = 'text/html,application/xhtml+xml,*/*;q=0.8';
const PRODUCTION = readConfig(
  {
    NODE_ENV: 'production',
    RECRUITING_URL: 'https://api.example.com',
    ALLOW_ANONYMOUS: 'true',
  },
  () => '',
);
const { graphiql, introspection } = PRODUCTION;

describe('pages of other sites', () => {
  test.each(['https://elsewhere.example', 'http://127.0.0.1:3000', 'null'])(
    'they get no CORS header: %s',
    async (origin) => {
      const { url } = await start();
      const responses = await Promise.all([
        fetch(`${url}/graphql`, post({ query: '{ __typename }' }, { origin })),
        fetch(`${url}/graphql?query={__typename}`, { headers: { origin } }),
        fetch(`${url}/graphql`, { headers: { origin, accept: BROWSER } }),
        fetch(`${url}/graphql`, post('{', { origin })),
        fetch(`${url}/health`, { headers: { origin } }),
        fetch(`${url}/ready`, { headers: { origin } }),
        fetch(`${url}/elsewhere`, { headers: { origin } }),
        fetch(`${url}/graphql`, {
          method: 'OPTIONS',
          headers: {
            origin,
            'access-control-request-method': 'POST',
            'access-control-request-headers': 'content-type',
          },
        }),
      ]);
      for (const { headers } of responses) {
        expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual(
          [],
        );
      }
    },
  );

  test.each<[string, () => RequestInit]>([
    ['a form', () => ({ body: new URLSearchParams({ query: RENAME }) })],
    ['plain text', () => ({ body: JSON.stringify({ query: RENAME }) })],
    ['no content type', () => ({ body: new Blob([JSON.stringify({ query: RENAME })]) })],
    [
      'two content types',
      () => ({
        body: JSON.stringify({ query: RENAME }),
        headers: { 'content-type': 'text/plain, application/json' },
      }),
    ],
  ])('they cannot change data by requests without a preflight: %s', async (_, request) => {
    const { url, sent } = await start({ mutations: 'all' });
    const response = await fetch(`${url}/graphql`, { method: 'POST', ...request() });
    expect(response.status).toBe(415);
    expect(sent.renames).toBe(0);
  });
});

const RENAME = 'mutation { rename(id: 1, name: "New") { id } }';

describe('GraphiQL', () => {
  test('GraphiQL is served only to browsers', async () => {
    const { url } = await start({ graphiql: true });
    const page = await fetch(`${url}/graphql`, { headers: { accept: BROWSER } });
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toContain('text/html');
    expect(page.headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/);
    const program = await fetch(`${url}/graphql`, { headers: { accept: 'application/json' } });
    expect(program.status).toBe(400);
  });

  test.each([
    ['GRAPHIQL=off', { graphiql: false }],
    ['production', { graphiql }],
  ])('GraphiQL is not served with %s', async (_, config) => {
    const { url } = await start(config);
    const response = await fetch(`${url}/graphql`, { headers: { accept: BROWSER } });
    expect(response.headers.get('content-type')).not.toContain('html');
    expect(await response.text()).not.toContain('<');
  });
});

describe('introspection', () => {
  test('introspection is answered outside production', async () => {
    const { url } = await start();
    const { data, errors } = await ask(url, getIntrospectionQuery());
    expect(errors).toBeUndefined();
    expect(data).toHaveProperty('__schema');
  });

  test.each([
    ['INTROSPECTION=off', { introspection: false }],
    ['production', { introspection }],
  ])('introspection is refused with %s, and queries are answered', async (_, config) => {
    const { url } = await start(config);
    for (const query of [
      getIntrospectionQuery(),
      '{ __schema { types { name } } }',
      '{ __type(name: "Candidate") { name } }',
      'query { me { id } ...F } fragment F on Query { hidden: __type(name: "Vacancy") { name } }',
    ]) {
      const { data, errors } = await ask(url, query);
      expect(data).toBeUndefined();
      expect(new Set(errors!.map(({ extensions }) => extensions.code))).toEqual(
        new Set(['BAD_USER_INPUT']),
      );
    }
    expect(await ask(url, '{ __typename me { __typename id } }')).toEqual({
      data: { __typename: 'Query', me: { __typename: 'Candidate', id: 1 } },
    });
  });
});

const WAYS: [string, string, string?][] = [
  ['under an alias', 'mutation { a: rename(id: 1, name: "New") { id } }'],
  [
    'in a fragment',
    'mutation { ...F } fragment F on Mutation { rename(id: 1, name: "New") { id } }',
  ],
  [
    'in a fragment without a name',
    'mutation { ... on Mutation { ... { rename(id: 1, name: "New") { id } } } }',
  ],
  ['with @include', 'mutation { rename(id: 1, name: "New") @include(if: true) { id } }'],
  [
    'with @skip',
    'mutation { ... @skip(if: false) { rename(id: 1, name: "New") @skip(if: false) { id } } }',
  ],
  [
    'twice',
    'mutation { rename(id: 1, name: "New") { id } b: rename(id: 1, name: "Newer") { id } }',
  ],
  [
    'before an allowed one',
    'mutation { rename(id: 1, name: "New") { id } hire(candidate: 2, vacancy: 1001) { __typename } }',
  ],
  [
    'in one of several operations',
    'mutation A { rename(id: 1, name: "New") { id } } query B { me { id } }',
    'A',
  ],
];

describe('mutations', () => {
  test('mutations are off by default, and refused before anything is sent', async () => {
    const { url, service, sent } = await start();
    await ask(url, '{ me { id } }');
    const before = service.stats.requests.graphql;
    const { data, errors } = await ask(url, RENAME);
    expect(data).toBeUndefined();
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
    expect(errors![0]!.message).toContain('MUTATIONS');
    expect(service.stats.requests.graphql).toBe(before);
    expect(sent.renames).toBe(0);
  });

  test('only the mutations named in MUTATIONS are allowed, and one that is not refuses the operation', async () => {
    const { url, sent } = await start({ mutations: ['rename'] });
    const rename = 'rename(id: 1, name: "New") { name }';
    const refused = await ask(
      url,
      `mutation { ${rename} hire(candidate: 2, vacancy: 1001) { __typename } }`,
    );
    expect(refused).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    expect(sent.renames).toBe(0);
    const { data } = await ask(url, `mutation { ${rename} }`);
    expect(data).toEqual({ rename: { name: 'New' } });
    expect(sent.renames).toBe(1);
  });

  test('a mutation under the alias of an allowed one is refused', async () => {
    const { url, sent } = await start({ mutations: ['hire'] });
    const { errors } = await ask(url, 'mutation { hire: rename(id: 1, name: "New") { id } }');
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
    expect(sent.renames).toBe(0);
  });

  test('other mutations are refused in every form, even to callers with the scope write', async () => {
    const apiKeys = [entryFor('writer', 'writer', 'write')];
    const auth = { apiKeys, jwt: undefined };
    const { url, sent } = await start({ mutations: ['hire'], auth });
    for (const [way, query, operationName] of WAYS) {
      const request = post({ query, operationName }, { 'x-api-key': 'writer' });
      const { errors = [] } = (await (await fetch(`${url}/graphql`, request)).json()) as Body;
      const codes = errors.map(({ extensions }) => extensions.code);
      expect([way, new Set(codes)]).toEqual([way, new Set(['FORBIDDEN'])]);
    }
    expect(sent.renames).toBe(0);
  });

  test('all mutations are allowed with MUTATIONS=all', async () => {
    const { url, sent } = await start({ mutations: 'all' });
    const { errors } = await ask(
      url,
      'mutation { rename(id: 1, name: "New") { name } hire(candidate: 2, vacancy: 1001) { __typename } }',
    );
    expect(errors).toBeUndefined();
    expect(sent.renames).toBe(1);
  });
});

async function start(config: Partial<typeof PRODUCTION> = {}) {
  const front = await startFront({ config });
  onTestFinished(() => front[Symbol.asyncDispose]());
  return front;
}

async function ask(url: string, query: string): Promise<Body> {
  return (await (await fetch(`${url}/graphql`, post({ query }))).json()) as Body;
}
