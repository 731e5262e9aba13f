import { describe, expect, test } from 'vitest';
import {
  check,
  Clock,
  day,
  exchange,
  grant,
  openLink,
  post,
  refresh,
  second,
  start,
} from './client.ts';

const invalidGrant = {
  error: 'invalid_grant',
  error_description: 'Refresh token is invalid, expired or revoked.',
};
const unsupportedGrantType = {
  error: 'unsupported_grant_type',
  error_description: 'The authorization grant type is not supported by the authorization server.',
};

describe('the token link', () => {
  test('the token link returns the whole token set, with the default lifetimes', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now });

    expect(await openLink(sandbox)).toEqual({
      name: expect.any(String),
      access_token: expect.any(String),
      expires_in: 86_400,
      refresh_token: expect.any(String),
      refresh_token_expires_in: 10_368_000,
      token_type: 'bearer',
      created_at: clock.now() / second,
    });
  });

  test('the token link returns the same set each time before the first refresh', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now });
    const first = await openLink(sandbox);
    clock.pass(29 * day);

    expect(await openLink(sandbox)).toEqual(first);
  });

  test('the token link expires exactly 30 days after it was generated', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now });
    clock.pass(30 * day - 1);
    expect((await fetch(sandbox.tokenLink)).status).toBe(200);
    clock.pass(1);
    const dead = await fetch(sandbox.tokenLink);

    expect(dead.status).toBe(404);
    expect(await dead.json()).toEqual({ errors: [{ message: 'This link no longer works.' }] });
  });

  test('the token link stops working with the first refresh', async () => {
    const sandbox = await start();
    const set = await openLink(sandbox);
    await refresh(sandbox, set.refresh_token);

    expect((await fetch(sandbox.tokenLink)).status).toBe(404);
  });

  test('the token link still works after a refresh that was refused', async () => {
    const sandbox = await start();
    await exchange(sandbox, 'made up');

    expect((await fetch(sandbox.tokenLink)).status).toBe(200);
  });

  test('a token link cannot be guessed, and no two sandboxes share one', async () => {
    const [sandbox, otherSandbox] = [await start(), await start()];
    const [path, otherPath] = [sandbox, otherSandbox].map(
      ({ tokenLink }) => new URL(tokenLink).pathname,
    );

    expect(path).toMatch(/[\w-]{40,}$/);
    expect(path).not.toBe(otherPath);
    expect((await fetch(`${sandbox.url}${otherPath}`)).status).toBe(404);
  });
});

describe('an access token', () => {
  test('a valid access token passes the check with 204 and no body', async () => {
    const sandbox = await start();
    const { access_token } = await openLink(sandbox);
    const answer = await check(sandbox, access_token);

    expect(answer.status).toBe(204);
    expect(await answer.text()).toBe('');
  });

  test('an access token expires exactly after expires_in seconds, for every API request', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now, expiresIn: 60 });
    const { access_token, expires_in } = await openLink(sandbox);
    expect(expires_in).toBe(60);
    const query = JSON.stringify({ query: '{ __typename }' });

    clock.pass(60 * second - 1);
    expect((await check(sandbox, access_token)).status).toBe(204);
    expect((await post(sandbox, access_token, query)).status).toBe(200);

    clock.pass(1);
    for (const answer of [
      await check(sandbox, access_token),
      await post(sandbox, access_token, query),
    ]) {
      expect(answer.status).toBe(401);
      expect(await answer.json()).toEqual({ type: 'invalid_token', detail: 'token_expired' });
    }
    expect(sandbox.stats.graphql).toBe(1);
  });

  test('an access token that was never issued, or is missing, is refused with token_invalid', async () => {
    const sandbox = await start();
    for (const headers of [{}, { authorization: 'Bearer made-up' }, { authorization: 'Basic x' }]) {
      for (const method of ['/auth_check', '/graphql']) {
        const answer = await fetch(sandbox.url + method, {
          method: method === '/graphql' ? 'POST' : 'GET',
          headers,
        });
        expect(answer.status).toBe(401);
        expect(await answer.json()).toEqual({ type: 'invalid_token', detail: 'token_invalid' });
      }
    }
  });

  test('an access token is valid after a refresh, until its own expiry', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now, expiresIn: 60 });
    const old = await openLink(sandbox);
    clock.pass(30 * second);
    const fresh = await refresh(sandbox, old.refresh_token);
    expect((await check(sandbox, old.access_token)).status).toBe(204);
    clock.pass(30 * second);

    expect((await check(sandbox, old.access_token)).status).toBe(401);
    expect((await check(sandbox, fresh.access_token)).status).toBe(204);
  });

  test('an access token ends with the refresh when the sandbox revokes on refresh', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now, revokeOnRefresh: true });
    const old = await openLink(sandbox);
    const fresh = await refresh(sandbox, old.refresh_token);
    const revoked = await check(sandbox, old.access_token);

    expect(revoked.status).toBe(401);
    expect(await revoked.json()).toEqual({ type: 'invalid_token', detail: 'token_revoked' });
    expect((await check(sandbox, fresh.access_token)).status).toBe(204);

    clock.pass(day);
    const expired = await check(sandbox, old.access_token);
    expect(await expired.json()).toEqual({ type: 'invalid_token', detail: 'token_expired' });
  });
});

describe('a refresh token', () => {
  test('a refresh token is exchanged for a new pair, with every field but created_at', async () => {
    const sandbox = await start({ expiresIn: 60, refreshExpiresIn: 600 });
    const old = await openLink(sandbox);
    const answer = await exchange(sandbox, old.refresh_token);
    const fresh = (await answer.json()) as typeof old;

    expect(answer.status).toBe(200);
    expect(fresh).toEqual({
      name: old.name,
      access_token: expect.any(String),
      expires_in: 60,
      refresh_token: expect.any(String),
      refresh_token_expires_in: 600,
      token_type: 'bearer',
    });
    expect(fresh.access_token).not.toBe(old.access_token);
    expect(fresh.refresh_token).not.toBe(old.refresh_token);
  });

  test('a refresh token is exchanged exactly once, and a second try leaves the new pair as it is', async () => {
    const sandbox = await start();
    const old = await openLink(sandbox);
    const fresh = await refresh(sandbox, old.refresh_token);
    const again = await exchange(sandbox, old.refresh_token);

    expect(again.status).toBe(400);
    expect(await again.json()).toEqual(invalidGrant);
    expect((await check(sandbox, fresh.access_token)).status).toBe(204);
    expect((await exchange(sandbox, fresh.refresh_token)).status).toBe(200);
    expect(sandbox.stats.refreshes).toBe(2);
  });

  test('a refresh token is exchanged exactly once among many requests at the same time', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => exchange(sandbox, refresh_token)),
    );

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(19);
    expect(sandbox.stats.refreshes).toBe(1);
  });

  test('a refresh token works after its access token has expired', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now });
    const old = await openLink(sandbox);
    clock.pass(2 * day);
    const fresh = await refresh(sandbox, old.refresh_token);

    expect((await check(sandbox, fresh.access_token)).status).toBe(204);
  });

  test('a refresh token expires exactly after refresh_token_expires_in seconds', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now });
    const { refresh_token } = await openLink(sandbox);
    clock.pass(120 * day);
    const late = await exchange(sandbox, refresh_token);

    expect(late.status).toBe(400);
    expect(await late.json()).toEqual(invalidGrant);
  });

  test('the lifetime of a refresh token is counted from the last refresh', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now });
    const first = await openLink(sandbox);
    clock.pass(120 * day - 1);
    const fresh = await refresh(sandbox, first.refresh_token);
    clock.pass(120 * day - 1);

    expect((await exchange(sandbox, fresh.refresh_token)).status).toBe(200);
  });

  test('a refresh token that is unknown or missing is an invalid grant, word for word', async () => {
    const sandbox = await start();
    for (const fields of [{ refresh_token: 'made up' }, { refresh_token: '' }, {}]) {
      const answer = await grant(sandbox, { grant_type: 'refresh_token', ...fields });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toEqual(invalidGrant);
    }
  });

  test('a refresh token is not spent by another grant type, which is refused word for word', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    for (const fields of [{ grant_type: 'password' }, { grant_type: '' }, {}]) {
      const answer = await grant(sandbox, { refresh_token, ...fields });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toEqual(unsupportedGrantType);
    }
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });

  test('a refresh token is accepted in a form only', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const answer = await fetch(`${sandbox.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ grant_type: 'refresh_token', refresh_token }),
    });

    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual(unsupportedGrantType);
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });

  test('a refresh token is not read from a form that is too large', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const answer = await grant(sandbox, {
      grant_type: 'refresh_token',
      refresh_token,
      padding: 'x'.repeat(16 * 1024),
    });

    expect(answer.status).toBe(413);
    expect(await answer.json()).toHaveProperty('errors');
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });
});
