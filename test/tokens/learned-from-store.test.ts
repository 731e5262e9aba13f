/** How a gateway learns from its store what commands and other gateways do to the set. */
import { expect, test } from 'vitest';
import type { Service } from '../service/service.ts';
import { readTokenSet } from '../../src/tokens/token-set.ts';
import { DAY, MINUTE } from '../support/random/manual-clock.ts';
import { startKeptOverSandbox, type Kept } from '../support/tokens/kept.ts';
import { codesOf, PERSON, watchStore } from '../support/tokens/tokens.ts';

test('a loss that a command found is logged once, and its refresh token has no time left', async () => {
  const { clock, store, ask, gateway, logged } = await startKeptOverSandbox();
  await clock.asleep();
  expect(await secondsLeft(gateway)).toBeGreaterThan(100 * 86_400);
  await endExchange(store);
  await clock.pass(3 * MINUTE);
  expect(about(logged, 'lost')).toEqual([
    expect.objectContaining({
      level: 60,
      generation: 2,
      msg: expect.stringMatching(/refuses the refresh token.*run `tokens import <link>`/),
    }),
  ]);
  expect(await secondsLeft(gateway)).toBe(0);
  // The access token is used as long as the service accepts it.
  expect(codesOf(await ask(PERSON))).toEqual([]);
});

test('a move by a command is logged once, with the store that has the set', async () => {
  const { clock, store, logged } = await startKeptOverSandbox();
  await clock.asleep();
  await store.moveOut({ to: 'sqlite:/elsewhere.db', replica: 'hand' });
  await clock.pass(3 * MINUTE);
  expect(about(logged, 'moved')).toEqual([
    expect.objectContaining({
      level: 50,
      msg: expect.stringContaining('moved to another store (sqlite:/elsewhere.db)'),
    }),
  ]);
});

test('a request that waits for the refresh of another process reads the store a few times only', async () => {
  const { clock, store, ask, service } = await startKeptOverSandbox();
  await clock.asleep();
  await ask(PERSON);
  await claimAsAnother(store);
  const { read } = store;
  let reads = 0;
  store.read = () => ((reads += 1), read());
  service.ahead += 2 * DAY;
  expect(codesOf(await ask(PERSON))).toEqual(['INTERNAL_SERVER_ERROR']);
  expect(reads).toBeLessThan(25);
});

test('a request that waits for the refresh of another process goes on when the store announces its end', async () => {
  const store = watchStore();
  let announce: (() => void) | undefined;
  store.watch = (onChange) => void (announce = onChange);
  const { clock, ask, service, sandbox } = await startKeptOverSandbox({ store });
  await clock.asleep();
  await ask(PERSON);
  const { set, generation, pair } = (await store.read())!;
  const attempt = await claimAsAnother(store);
  service.ahead += 2 * DAY;
  let naps = 0;
  const { sleep } = clock;
  const atNap = async () => {
    // In the middle of a pause of a second.
    if ((naps += 1) !== 20) return;
    const next = readTokenSet(await exchanged(sandbox, pair.refreshToken))!;
    const exchange = { outcome: 'rotated', at: clock.now(), latencyMs: 1 } as const;
    await store.save({ set, generation, attempt, pair: next, ...exchange });
    announce!();
  };
  const napping: typeof sleep = async (ms, signal) => {
    if (ms === 100) await atNap();
    await sleep(ms, signal);
  };
  Object.assign(clock, { sleep: napping });
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(naps).toBeLessThan(24);
  expect(sandbox.stats.requests.oauthToken).toBe(2);
});

test('a refresh that waits for another process sends nothing if that exchange becomes uncertain while the access token works', async () => {
  const { clock, store, ask, sandbox } = await startKeptOverSandbox();
  await clock.asleep();
  await ask(PERSON);
  const { claim } = store;
  store.claim = async (ours) => {
    store.claim = claim;
    const attempt = await claimAsAnother(store);
    const claimed = await claim(ours);
    await store.endAttempt(attempt, { outcome: 'uncertain', latencyMs: 1 });
    return claimed;
  };
  clock.jump(0.668 * DAY);
  await clock.pass(MINUTE);
  expect(await store.read()).toMatchObject({ generation: 2, unanswered: 1 });
  expect(sandbox.stats.requests.oauthToken).toBe(1);
});

async function exchanged(sandbox: Service, refreshToken: string): Promise<unknown> {
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken });
  return (await fetch(`${sandbox.url}/oauth/token`, { method: 'POST', body })).json();
}

async function claimAsAnother(store: Kept['store']): Promise<string> {
  const { set, generation } = (await store.read())!;
  const attempt = 'of another process';
  await store.claim({ set, generation, attempt, lifeMs: 150_000, replica: 'other' });
  return attempt;
}

/** As a command does it whose exchange the service refuses. */
async function endExchange(store: Kept['store']): Promise<void> {
  const { set, generation } = (await store.read())!;
  const attempt = 'of a command';
  await store.claim({ set, generation, attempt, lifeMs: 150_000, replica: 'hand' });
  await store.endAttempt(attempt, { outcome: 'invalid-grant', latencyMs: 1 });
}

async function secondsLeft(gateway: Kept['gateway']): Promise<number> {
  const text = await gateway.metrics.text();
  return Number(/^recruiting_refresh_token_seconds_left (.*)$/m.exec(text)![1]);
}

function about(logged: Kept['logged'], trouble: string) {
  return logged.filter((line) => line['trouble'] === trouble);
}
