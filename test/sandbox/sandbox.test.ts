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
import { ask, check, Clock, day, exchange, openLink, refresh, second, start } from './client.ts';

test('the sandbox has the schema of the snapshot: types, fields, arguments and nullability', async () => {
  const sandbox = await start();
  const { access_token } = await openLink(sandbox);
  const { data } = await ask<IntrospectionQuery>(sandbox, access_token, getIntrospectionQuery());
  const snapshot = buildSchema(readFileSync('schema/upstream.graphql', 'utf8'));
  expect(shape(buildClientSchema(data!))).toBe(shape(snapshot));
});

test('an invalid query is answered with its errors, and status 200', async () => {
  const sandbox = await start();
  const { access_token } = await openLink(sandbox);
  for (const query of ['{ persons {', '{ salaries }']) {
    expect(await ask(sandbox, access_token, query)).toEqual({
      errors: [expect.objectContaining({ message: expect.any(String) })],
    });
  }
});

test('the token link returns the token set until it is first refreshed, and for 30 days', async () => {
  const clock = new Clock();
  const [sandbox, other] = [await start({ now: clock.now }), await start({ now: clock.now })];
  const set = await openLink(sandbox);
  expect(set).toEqual({
    name: expect.any(String),
    access_token: expect.any(String),
    expires_in: 86_400,
    refresh_token: expect.any(String),
    refresh_token_expires_in: 10_368_000,
    token_type: 'bearer',
    created_at: clock.now() / second,
  });
  expect(await openLink(sandbox)).toEqual(set);
  await refresh(sandbox, set.refresh_token);
  expect((await fetch(sandbox.tokenLink)).status).toBe(404);
  clock.pass(30 * day - 1);
  expect((await fetch(other.tokenLink)).status).toBe(200);
  clock.pass(1);
  expect((await fetch(other.tokenLink)).status).toBe(404);
});

test('a refresh token is exchanged exactly once, whatever is sent at the same time', async () => {
  const sandbox = await start();
  const { refresh_token } = await openLink(sandbox);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => exchange(sandbox, refresh_token)),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  const refused = answers.find(({ status }) => status === 400)!;
  expect(await refused.json()).toEqual({
    error: 'invalid_grant',
    error_description: 'Refresh token is invalid, expired or revoked.',
  });
});

test('an access token is valid until its own expiry, also after a refresh', async () => {
  const clock = new Clock();
  const sandbox = await start({ now: clock.now, expiresIn: 60 });
  const old = await openLink(sandbox);
  clock.pass(30 * second);
  const fresh = await refresh(sandbox, old.refresh_token);
  expect(await check(sandbox, old.access_token)).toBeUndefined();
  clock.pass(30 * second);
  expect(await check(sandbox, old.access_token)).toBe('token_expired');
  expect(await check(sandbox, fresh.access_token)).toBeUndefined();
  expect(await check(sandbox, 'made-up')).toBe('token_invalid');
});

test('a refresh token ends 120 days after the last refresh', async () => {
  const clock = new Clock();
  const sandbox = await start({ now: clock.now });
  const first = await openLink(sandbox);
  clock.pass(120 * day - 1);
  const next = await refresh(sandbox, first.refresh_token);
  clock.pass(120 * day);
  expect((await exchange(sandbox, next.refresh_token)).status).toBe(400);
});

test('an administrator makes and revokes tokens over HTTP', async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const post = async (action: string) =>
    (await fetch(`${sandbox.url}/account/${action}`, { method: 'POST' })).text();
  const old = await openLink(sandbox);
  const tokenLink = (await post('tokens')).trim();
  expect(tokenLink).not.toBe(sandbox.tokenLink);
  const made = await openLink({ tokenLink });
  expect(await check(sandbox, old.access_token)).toBe('token_revoked');
  expect((await exchange(sandbox, old.refresh_token)).status).toBe(400);
  expect(await check(sandbox, made.access_token)).toBeUndefined();
  expect(await post('revoke')).toBe('All tokens are revoked.\n');
  expect(await check(sandbox, made.access_token)).toBe('token_revoked');
  expect((await exchange(sandbox, made.refresh_token)).status).toBe(400);
});

function shape(schema: GraphQLSchema): string {
  const silent = buildClientSchema(introspectionFromSchema(schema, { descriptions: false }));
  return printSchema(lexicographicSortSchema(silent));
}
