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
import { startService, type Service, type ServiceOptions } from '../service/service.ts';

const SECOND = 1000;
const DAY = 86_400 * SECOND;
const BEHAVIOURS = ['keyset', 'record', 'position'] as const;
const PAGE = `query ($first: Int, $after: String) {
  persons(first: $first, after: $after) { items { id firstName } pageInfo { first hasNextPage endCursor } }
}`;

interface Page {
  readonly items: readonly { readonly id: string; readonly firstName: string }[];
  readonly pageInfo: { first: number; hasNextPage: boolean; endCursor: string | null };
}

interface Answer<Data> {
  readonly data?: Data | null;
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
  return { service, now: () => now, pass: (ms: number) => void (now += ms) };
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

async function ask<Data>(service: Service, token: string, query: string, variables: object = {}) {
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as Answer<Data>;
}

/** Requests pages of persons with a valid token. */
async function reader(service: Service) {
  const { access_token } = await openLink(service);
  return (variables: object) => ask<{ persons: Page }>(service, access_token, PAGE, variables);
}

test('the sandbox has the schema of the snapshot: types, fields, arguments and nullability', async () => {
  const { service } = await start();
  const { access_token } = await openLink(service);
  const { data } = await ask<IntrospectionQuery>(service, access_token, getIntrospectionQuery());
  const snapshot = buildSchema(readFileSync('schema/upstream.graphql', 'utf8'));
  expect(shapeOf(buildClientSchema(data!))).toBe(shapeOf(snapshot));
  expect(await ask(service, access_token, '{ salaries }')).toEqual({
    errors: [expect.objectContaining({ message: expect.any(String) })],
  });
});

test('pages have 1 to 50 records, and say how many', async () => {
  const { service } = await start();
  const page = await reader(service);
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

test.each(BEHAVIOURS.flatMap((cursors) => [7, 50].map((first) => ({ cursors, first }))))(
  'a walk with $cursors cursors in pages of $first returns every person once, in order',
  async ({ cursors, first }) => {
    const { service } = await start({ cursors, persons: 103 });
    const page = await reader(service);
    const read: unknown[] = [];
    let after: string | null = null;
    do {
      const { items, pageInfo }: Page = (await page({ first, after })).data!.persons;
      read.push(...items);
      after = pageInfo.hasNextPage ? pageInfo.endCursor : null;
    } while (after !== null);
    expect(read).toEqual(service.persons.all());
  },
);

// The cursor is that of the tenth record, which is removed with the two before it.
test.each([
  ['a keyset cursor continues after its key', 'keyset', 7, undefined],
  ['a record cursor is refused', 'record', undefined, /no longer exists/],
  ['a position cursor skips as many records', 'position', 10, undefined],
] as const)('after its record was removed, %s', async (_, cursors, position, refusal) => {
  const { service } = await start({ cursors });
  const page = await reader(service);
  const after = (await page({ first: 10 })).data!.persons.pageInfo.endCursor;
  service.persons.remove(7, 3);
  const { data, errors } = await page({ first: 5, after });
  if (refusal) expect(errors).toMatchObject([{ message: expect.stringMatching(refusal) }]);
  else expect(data!.persons.items).toEqual(service.persons.slice(position, position + 5));
});

test('persons that are inserted, moved and removed stay in the order of their keys', async () => {
  const { service } = await start({ persons: 12 });
  const { persons } = service;
  for (let change = 0; change < 60; change += 1) {
    persons.insert(persons.length % 5, 2);
    persons.move(0, persons.length - 1);
    persons.change();
  }
  const keys = Array.from({ length: persons.length }, (_, position) => persons.keyAt(position));
  expect(keys).toEqual([...new Set(keys)].toSorted());
  expect(new Set(persons.all().map(({ id }) => id)).size).toBe(persons.length);
});

test('the token link returns the token set until it is first refreshed, and for 30 days', async () => {
  const { service, now } = await start();
  const set = await openLink(service);
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

test('a refresh token is exchanged exactly once, whatever is sent at the same time', async () => {
  const { service } = await start();
  const set = await openLink(service);
  const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(service.url, set)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  const refused = answers.find(({ status }) => status === 400)!;
  expect(await refused.json()).toMatchObject({ error: 'invalid_grant' });
});

test('an access token is valid until its own expiry, also after a refresh, and a refresh token for 120 days', async () => {
  const { service, pass } = await start({ expiresIn: 60 });
  const { url } = service;
  const old = await openLink(service);
  pass(30 * SECOND);
  const fresh = (await (await exchange(url, old)).json()) as TokenSet;
  expect(await refusalOf(url, old.access_token)).toBeUndefined();
  pass(30 * SECOND);
  expect(await refusalOf(url, old.access_token)).toBe('token_expired');
  expect(await refusalOf(url, fresh.access_token)).toBeUndefined();
  expect(await refusalOf(url, 'made-up')).toBe('token_invalid');
  pass(120 * DAY - 30 * SECOND);
  expect((await exchange(url, fresh)).status).toBe(400);
});

test('an administrator makes and revokes tokens over HTTP', async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const { url } = sandbox;
  const post = async (action: string) =>
    (await fetch(`${url}/account/${action}`, { method: 'POST' })).text();
  const old = await openLink(sandbox);
  const made = await openLink({ tokenLink: (await post('tokens')).trim() });
  expect(await refusalOf(url, old.access_token)).toBe('token_revoked');
  expect((await exchange(url, old)).status).toBe(400);
  expect(await refusalOf(url, made.access_token)).toBeUndefined();
  expect(await post('revoke')).toBe('All tokens are revoked.\n');
  expect(await refusalOf(url, made.access_token)).toBe('token_revoked');
  expect((await exchange(url, made)).status).toBe(400);
});

function shapeOf(schema: GraphQLSchema): string {
  const silent = buildClientSchema(introspectionFromSchema(schema, { descriptions: false }));
  return printSchema(lexicographicSortSchema(silent));
}
