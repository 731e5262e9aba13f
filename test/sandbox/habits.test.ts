import { getIntrospectionQuery } from 'graphql';
import { expect, test } from 'vitest';
import type { SandboxOptions } from '../../sandbox/sandbox.ts';
import { check, Clock, exchange, openLink, post, second, start } from './client.ts';

test('an operation that costs more than the service allows is refused with both numbers', async () => {
  const { ask } = await asking({ maxCost: 301 });
  const page = (first: string, declared = '') =>
    ask(`query ${declared} {
      persons(first: ${first}) { __typename items { id firstName } ...info }
    } fragment info on PersonPage { pageInfo { endCursor hasNextPage } }`);
  expect(await page('50')).toMatchObject(FULL);
  expect(await page('$some', '($some: Int = 50)')).toMatchObject(FULL);
  // A list returns 50 where nothing else was requested.
  expect(await page('$given', '($given: Int)')).toMatchObject(FULL);
  expect(await page('51')).toEqual({
    errors: [
      {
        message: 'maximum query complexity exceeded 307 > 301',
        extensions: { classification: 'ExecutionAborted' },
      },
    ],
  });
  expect(
    await ask(
      'query ($given: Int) { persons(first: $given) { items { id firstName } pageInfo { endCursor hasNextPage } } }',
      {
        given: 60,
      },
    ),
  ).toMatchObject({ errors: [{ message: 'maximum query complexity exceeded 361 > 301' }] });
  expect(await ask(getIntrospectionQuery())).toMatchObject({ data: { __schema: {} } });
});

test('the cost of records below records is multiplied, with those of every fragment', async () => {
  const { ask } = await asking({ results: true, costExtension: true });
  const { extensions } = await ask(`{
    vacancies(first: 3) { items { id persons(first: 7) { items { id } } } }
    a: person(id: 1) { ... on PersonItem { id } ... on PersonError { message } }
    personSources(first: 200) { items { id } }
  }`);
  // 1 + 3 * (1 + 1 + (1 + 7 * 2)), 1 + 2, 1 + 200 * 2
  expect(extensions).toEqual({ cost: { requested: 52 + 3 + 401 } });
});

test.each([413, 502, 504] as const)('too high a cost can be refused with %d', async (status) => {
  const { send } = await asking({ maxCost: 10, tooCostly: status });
  expect((await send('{ persons { items { id } } }')).status).toBe(status);
  expect((await send('{ persons(first: 1) { items { id } } }')).status).toBe(200);
});

test('introspection in bad faith is refused, and the usual introspection is answered', async () => {
  const { ask } = await asking({ introspection: 'strict' });
  expect(await ask(getIntrospectionQuery())).toMatchObject({ data: { __schema: {} } });
  const fields = '{ fields { type { fields { name } } } }';
  const refused = [
    ['{ a: __type(name: "Person") { name } b: __type(name: "Query") { name } }', 'Query.__type'],
    [`{ __type(name: "Query") ${fields} }`, '__Type.fields'],
    [`{ __schema { queryType { ...f } } } fragment f on __Type ${fields}`, '__Type.fields'],
  ] as const;
  for (const [query, field] of refused) {
    expect(await ask(query)).toEqual({
      errors: [
        {
          message: `This request is not asking for introspection in good faith - ${field} is present too often!`,
          extensions: { classification: 'BadFaithIntrospection' },
        },
      ],
    });
  }
  // Not what describes the schema.
  expect(await ask('{ __typename persons(first: 1) { __typename } }')).toMatchObject({
    data: { __typename: 'Query' },
  });
});

test('every address refuses a request without a contact in its User-Agent', async () => {
  const sandbox = await start({ requireUserAgent: true });
  const ask = (path: string, userAgent: string) =>
    fetch(new URL(path, sandbox.url), {
      method: /oauth|graphql/.test(path) ? 'POST' : 'GET',
      headers: { 'user-agent': userAgent },
    });
  for (const path of ['/auth_check', '/oauth/token', '/graphql', sandbox.tokenLink]) {
    for (const wrong of ['', 'curl/8.0', 'Mozilla/5.0 (X11) Gecko/1', 'mine (me@example.com)']) {
      const refused = await ask(path, wrong);
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({ errors: [{ type: 'bad_user_agent' }] });
    }
    expect([200, 400, 401]).toContain((await ask(path, 'mine/1.0 (me@example.com)')).status);
  }
  expect(await (await ask('/auth_check', 'mine/1.0 (me@example.com)')).json()).toMatchObject({
    type: 'invalid_token',
  });
});

test.each([400, 403] as const)(
  'a refresh before the expiry is refused with %d, and its token stays valid',
  async (status) => {
    const clock = new Clock();
    const sandbox = await start({ refuseEarlyRefresh: status, expiresIn: 60, now: clock.now });
    const { access_token, refresh_token } = await openLink(sandbox);
    for (let times = 0; times < 2; times += 1) {
      const early = await exchange(sandbox, refresh_token);
      expect(early.status).toBe(status);
      expect(await early.json()).toEqual({
        error: 'invalid_grant',
        error_description: 'token not expired',
      });
    }
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(['too-early', 'too-early']);
    expect((await check(sandbox, access_token)).status).toBe(204);
    clock.pass(60 * second);
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
    const spent = await exchange(sandbox, refresh_token);
    expect(spent.status).toBe(400);
    expect(await spent.json()).toMatchObject({
      error_description: 'Refresh token is invalid, expired or revoked.',
    });
  },
);

test('the tokens of a demoted administrator are not too early', async () => {
  const sandbox = await start({ refuseEarlyRefresh: 400 });
  const { refresh_token } = await openLink(sandbox);
  sandbox.revoke();
  expect(await (await exchange(sandbox, refresh_token)).json()).toMatchObject({
    error_description: 'Refresh token is invalid, expired or revoked.',
  });
});

test('the token link can be a page that shows the token set', async () => {
  const sandbox = await start({ linkPage: true });
  const page = await fetch(sandbox.tokenLink, { headers: { accept: 'application/json' } });
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const [, shown] = /<pre>([^<]*)<\/pre>/.exec(await page.text())!;
  const set = JSON.parse(shown!.replaceAll('&quot;', '"').replaceAll('&amp;', '&')) as {
    access_token: string;
    created_at: number;
  };
  expect(set.created_at).toBeTypeOf('number');
  expect((await check(sandbox, set.access_token)).status).toBe(204);
});

test('each answer can have an X-Request-Id of its own', async () => {
  const { sandbox, send } = await asking({ requestIds: true });
  const answers = [await send('{ persons { items { id } } }'), await fetch(`${sandbox.url}/none`)];
  const ids = answers.map(({ headers }) => headers.get('x-request-id'));
  expect(new Set(ids).size).toBe(2);
  expect(ids[1]).toBe(sandbox.stats.lastRequestId);
});

test('without options, the sandbox has none of these habits', async () => {
  const { sandbox, ask, send } = await asking({});
  expect(Object.keys(await ask('{ persons(first: 1) { items { id } } }'))).toEqual(['data']);
  const response = await send(
    '{ a: __type(name: "Person") { name } b: __type(name: "Query") { name } }',
  );
  expect(response.headers.get('x-request-id')).toBeNull();
  expect(await response.json()).toEqual({ data: { a: { name: 'Person' }, b: { name: 'Query' } } });
  const { refresh_token } = await openLink(sandbox);
  expect((await exchange(sandbox, refresh_token)).status).toBe(200);
});

test('all habits together are those that are switched on one by one, over the lists of results', async () => {
  const headers = { 'user-agent': 'mine/1.0 (me@example.com)' };
  const sandbox = await start({ allHabits: true });
  expect((await fetch(sandbox.tokenLink)).status).toBe(400);
  const page = await (await fetch(sandbox.tokenLink, { headers })).text();
  const access = /sandbox-access-[\w-]+/.exec(page)![0];
  const refresh = /sandbox-refresh-[\w-]+/.exec(page)![0];
  const answer = await post(sandbox, access, '{"query":"{ managers { __typename } }"}', {
    headers,
  });
  expect(answer.headers.get('x-request-id')).toBe(sandbox.stats.lastRequestId);
  expect(await answer.json()).toEqual({
    data: { managers: { __typename: 'Managers' } },
    extensions: { cost: { requested: 1 } },
  });
  const early = await fetch(`${sandbox.url}/oauth/token`, {
    method: 'POST',
    headers,
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refresh }),
  });
  expect(await early.json()).toMatchObject({ error_description: 'token not expired' });
  const rich = await start({
    allHabits: true,
    rich: true,
    requireUserAgent: false,
    linkPage: false,
  });
  const { access_token } = await openLink(rich);
  const costly = await post(
    rich,
    access_token,
    '{"query":"{ candidates { items { id stage vacancy { id title openedOn } person { id firstName } } } }"}',
  );
  expect(await costly.json()).toMatchObject({
    errors: [{ message: 'maximum query complexity exceeded 501 > 500' }],
  });
});

const FULL = { data: { persons: { items: Array.from({ length: 50 }, () => ({})) } } };

interface Body {
  data?: unknown;
  errors?: { message: string; extensions?: unknown }[];
  extensions?: unknown;
}

async function asking(options: SandboxOptions) {
  const sandbox = await start(options);
  const { access_token } = await openLink(sandbox);
  const send = (query: string, variables = {}) =>
    post(sandbox, access_token, JSON.stringify({ query, variables }));
  const ask = async (query: string, variables = {}) =>
    (await (await send(query, variables)).json()) as Body;
  return { sandbox, send, ask };
}
