import { describe, expect, test } from 'vitest';
import { check, Clock, day, exchange, openLink, refresh, start } from './client.ts';

const revoked = { type: 'invalid_token', detail: 'token_revoked' };

describe('tokens made by an administrator', () => {
  test('a token that an administrator makes has a link and a pair of its own', async () => {
    const sandbox = await start();
    const [oldLink, old] = [sandbox.tokenLink, await openLink(sandbox)];
    const link = sandbox.makeNewSet();
    const fresh = await openLink(sandbox);

    expect(link).toBe(sandbox.tokenLink);
    expect(link).not.toBe(oldLink);
    expect(fresh.refresh_token).not.toBe(old.refresh_token);
    expect((await check(sandbox, fresh.access_token)).status).toBe(204);
    expect((await exchange(sandbox, fresh.refresh_token)).status).toBe(200);
  });

  test('a new token ends all earlier tokens and links', async () => {
    const sandbox = await start();
    const [oldLink, first] = [sandbox.tokenLink, await openLink(sandbox)];
    const second = await refresh(sandbox, first.refresh_token);
    sandbox.makeNewSet();

    for (const { access_token, refresh_token } of [first, second]) {
      const answer = await check(sandbox, access_token);
      expect(answer.status).toBe(401);
      expect(await answer.json()).toEqual(revoked);
      expect(await (await exchange(sandbox, refresh_token)).json()).toMatchObject({
        error: 'invalid_grant',
      });
    }
    expect((await fetch(oldLink)).status).toBe(404);
    expect((await fetch(sandbox.tokenLink)).status).toBe(200);
  });

  test('a new token ends a link that was never opened, and the link says so', async () => {
    const sandbox = await start();
    const oldLink = sandbox.tokenLink;
    sandbox.makeNewSet();
    const dead = await fetch(oldLink);

    expect(dead.status).toBe(404);
    expect(await dead.json()).toEqual({ errors: [{ message: 'This link no longer works.' }] });
    expect(sandbox.stats.requests.tokenLink).toBe(1);
  });

  test('the link of a new token is valid for 30 days from then on', async () => {
    const clock = new Clock();
    const sandbox = await start({ now: clock.now });
    clock.pass(29 * day);
    sandbox.makeNewSet();
    clock.pass(30 * day - 1);
    expect((await openLink(sandbox)).created_at).toBe((clock.now() + 1 - 30 * day) / 1000);
    clock.pass(1);

    expect((await fetch(sandbox.tokenLink)).status).toBe(404);
  });
});

describe('an administrator who is demoted', () => {
  test('a demoted administrator has neither a valid access token nor a valid refresh token', async () => {
    const sandbox = await start();
    const first = await openLink(sandbox);
    const second = await refresh(sandbox, first.refresh_token);
    sandbox.revoke();

    for (const { access_token } of [first, second]) {
      const answer = await check(sandbox, access_token);
      expect(answer.status).toBe(401);
      expect(await answer.json()).toEqual(revoked);
    }
    const answer = await exchange(sandbox, second.refresh_token);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: 'invalid_grant' });
    expect(sandbox.exchanges.at(-1)?.outcome).toBe('invalid-grant');
  });

  test('another administrator can make a new token after one was demoted', async () => {
    const sandbox = await start();
    sandbox.revoke();
    sandbox.makeNewSet();
    const { access_token, refresh_token } = await openLink(sandbox);

    expect((await check(sandbox, access_token)).status).toBe(204);
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });
});
