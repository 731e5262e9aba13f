import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  introspectionFromSchema,
  lexicographicSortSchema,
  printSchema,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { startService, type ServiceOptions } from '../service/service.ts';

const SECOND = 1000;
const DAY = 86_400 * SECOND;
const PAGE = `query ($first: Int, $after: String) {
  persons(first: $first, after: $after) { items { id firstName } pageInfo { first hasNextPage endCursor } }
}`;

interface Page {
  readonly items: readonly { readonly id: string; readonly firstName: string }[];
  readonly pageInfo: { first: number; hasNextPage: boolean; endCursor: string | null };
}

interface Answer {
  readonly data?: { persons: Page };
  readonly errors?: readonly { readonly message: string }[];
}

interface TokenSet {
  readonly access_token: string;
  readonly refresh_token: string;
}

/** A sandbox that lives as long as the test, with a clock that advances only when the test says so. */
async function start(options: ServiceOptions = {}) {
  let now = Date.UTC(2026, 0, 1);
  const service = await startService({ now: () => now, ...options });
  onTestFinished(() => service.close());
  const set = await openLink(service);
  const ask = async (query: string, variables: object = {}) => {
    const response = await fetch(`${service.url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${set.access_token}`,
      },
      body: JSON.stringify({ query, variables }),
    });
    return (await response.json()) as object;
  };
  const page = async (variables: object) => (await ask(PAGE, variables)) as Answer;
  return { service, set, ask, page, now: () => now, pass: (ms: number) => void (now += ms) };
}

async function openLink({ tokenLink }: { tokenLink: string }): Promise<TokenSet> {
  return (await (await fetch(tokenLink)).json()) as TokenSet;
}

/** Returns why an access token is refused; undefined if it is valid. */
async function refusalOf(url: string, token: string): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/auth_check`, { headers });
  if (response.status === 204) return undefined;
  return ((await response.json()) as { detail: string }).detail;
}

function exchange(url: string, { refresh_token }: TokenSet): Promise<Response> {
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token });
  return fetch(`${url}/oauth/token`, { method: 'POST', body });
}

test('the sandbox has the schema of the snapshot: types, fields, arguments and nullability', async () => {
  const { ask } = await start();
  const { data } = (await ask(getIntrospectionQuery())) as { data: IntrospectionQuery };
  const snapshot = buildSchema(readFileSync('schema/upstream.graphql', 'utf8'));
  expect(shapeOf(buildClientSchema(data))).toBe(shapeOf(snapshot));
  expect(await ask('{ salaries }')).toEqual({
    errors: [expect.objectContaining({ message: expect.any(String) })],
  });
});

function shapeOf(schema: GraphQLSchema): string {
  const silent = buildClientSchema(introspectionFromSchema(schema, { descriptions: false }));
  return printSchema(lexicographicSortSchema(silent));
}

test('pages have 1 to 50 records, and say how many', async () => {
  const { page } = await start();
  for (const [first, size] of [
    [1, 1],
    [51, 50],
    [null, 50],
  ]) {
    const { items, pageInfo } = (await page({ first })).data!.persons;
    expect(items).toHaveLength(size!);
    expect(pageInfo).toMatchObject({ first: size, hasNextPage: true });
  }
  expect(await page({ first: 0 })).toMatchObject({
    data: null,
    errors: [{ message: 'first must be from 1 to 50, and it is 0.', path: ['persons'] }],
  });
});

// The cursor is that of the tenth record, which is removed with the two before it.
test.each([
  ['keyset', 'continues after its key', 7, undefined],
  ['record', 'is refused', 7, /no longer exists/],
  ['position', 'skips as many records', 10, undefined],
] as const)(
  'a walk with %s cursors reads every person once, in order; a cursor whose record was removed %s',
  async (cursors, _, position, refusal) => {
    const { service, page } = await start({ cursors, persons: 103 });
    for (const first of [7, 50]) {
      const read: unknown[] = [];
      for (let after: string | null = null, goesOn = true; goesOn;) {
        const { items, pageInfo }: Page = (await page({ first, after })).data!.persons;
        read.push(...items);
        [after, goesOn] = [pageInfo.endCursor, pageInfo.hasNextPage];
      }
      expect(read).toEqual(service.persons.all());
    }
    const after = (await page({ first: 10 })).data!.persons.pageInfo.endCursor;
    service.persons.remove(7, 3);
    const { data, errors } = await page({ first: 5, after });
    expect(errors?.[0]?.message ?? '').toMatch(refusal ?? /^$/);
    if (!refusal)
      expect(data!.persons.items).toEqual(service.persons.slice(position, position + 5));
  },
);

test('persons that are inserted, moved and removed stay in the order of their keys', async () => {
  const { persons } = (await start({ persons: 12 })).service;
  for (let change = 0; change < 60; change += 1) {
    persons.insert(persons.length % 5, 2);
    persons.move(0, persons.length - 1);
    persons.remove(persons.length >> 1);
  }
  const keys = Array.from({ length: persons.length }, (_, position) => persons.keyAt(position));
  expect(keys).toEqual([...new Set(keys)].toSorted());
  expect(new Set(persons.all().map(({ id }) => id)).size).toBe(persons.length);
});

test('the token link returns the token set until it is first refreshed, and for 30 days', async () => {
  const { service, set, now } = await start();
  expect(set).toEqual({
    name: expect.any(String),
    access_token: expect.any(String),
    expires_in: 86_400,
    refresh_token: expect.any(String),
    refresh_token_expires_in: 10_368_000,
    token_type: 'bearer',
    created_at: now() / SECOND,
  });
  expect(await openLink(service)).toEqual(set);
  await exchange(service.url, set);
  expect((await fetch(service.tokenLink)).status).toBe(404);

  const other = await start();
  other.pass(30 * DAY - 1);
  expect((await fetch(other.service.tokenLink)).status).toBe(200);
  other.pass(1);
  expect((await fetch(other.service.tokenLink)).status).toBe(404);
});

test('a refresh token is exchanged once, whatever is sent at the same time, and for 120 days', async () => {
  const { service, set, pass } = await start();
  const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(service.url, set)));
  const bodies = await Promise.all(answers.map((answer) => answer.json()));
  const fresh = bodies.filter((body) => !('error' in (body as object))) as TokenSet[];
  expect(fresh).toHaveLength(1);
  expect(bodies.filter((body) => body !== fresh[0])).toEqual(
    Array(19).fill(expect.objectContaining({ error: 'invalid_grant' })),
  );
  pass(120 * DAY);
  expect((await exchange(service.url, fresh[0]!)).status).toBe(400);
});

test('an access token is valid until its own expiry, also after a refresh', async () => {
  const { service, set: old, pass } = await start({ expiresIn: 60 });
  const { url } = service;
  pass(30 * SECOND);
  const fresh = (await (await exchange(url, old)).json()) as TokenSet;
  expect(await refusalOf(url, old.access_token)).toBeUndefined();
  pass(30 * SECOND);
  expect(await refusalOf(url, old.access_token)).toBe('token_expired');
  expect(await refusalOf(url, fresh.access_token)).toBeUndefined();
  expect(await refusalOf(url, 'made-up')).toBe('token_invalid');
});

const JSON_TYPE = 'application/json; charset=utf-8';
const FORM = 'application/x-www-form-urlencoded';
const REFRESH = 'grant_type=refresh_token&refresh_token=x';

test.each<[string, number, RegExp, path: string, type?: string, body?: string]>([
  ['an unknown path', 404, /nothing at this address/, '/nowhere'],
  ['another method', 405, /Only POST/, '/graphql'],
  ['another content type', 415, /application\/json/, '/graphql', 'text/plain', '{"query":"{a}"}'],
  ['a body that is not JSON', 400, /query is a string/, '/graphql', JSON_TYPE, 'query'],
  ['a body without a query', 400, /query is a string/, '/graphql', JSON_TYPE, 'null'],
  ['another grant', 400, /unsupported_grant_type/, '/oauth/token', FORM, 'grant_type=password'],
  ['a grant that is no form', 400, /unsupported_grant_type/, '/oauth/token', JSON_TYPE, REFRESH],
  ['an unknown refresh token', 400, /invalid_grant/, '/oauth/token', FORM, REFRESH],
])('a request with %s is refused with %i', async (_, status, message, path, type, body) => {
  const { service, set } = await start();
  const headers = { authorization: `bearer ${set.access_token}`, 'content-type': type ?? '' };
  const method = body === undefined ? 'GET' : 'POST';
  const init = { method, headers, ...(body !== undefined && { body }) };
  const response = await fetch(`${service.url}${path}?x=1`, init);
  expect([response.status, await response.text()]).toEqual([
    status,
    expect.stringMatching(message),
  ]);
  expect(response.headers.get('allow')).toBe(status === 405 ? 'POST' : null);
});

test('an administrator makes and revokes tokens over HTTP', async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const { url } = sandbox;
  const post = async (action: string) =>
    (await fetch(`${url}/account/${action}`, { method: 'POST' })).text();
  const old = await openLink(sandbox);
  // The link of refreshed tokens works no more; the new one does.
  expect((await exchange(url, old)).status).toBe(200);
  const made = await openLink({ tokenLink: (await post('tokens')).trim() });
  const expectRevoked = async (set: TokenSet) => {
    expect(await refusalOf(url, set.access_token)).toBe('token_revoked');
    expect((await exchange(url, set)).status).toBe(400);
  };
  await expectRevoked(old);
  expect(await refusalOf(url, made.access_token)).toBeUndefined();
  expect(await post('revoke')).toBe('All tokens are revoked.\n');
  await expectRevoked(made);
});
