/** How a gateway learns from its store what commands and other gateways do to the set. */
import { expect, test } from 'vitest';
import { MINUTE } from '../support/random/manual-clock.ts';
import { codesOf, PERSON, startKeptOverSandbox, type Kept } from '../support/tokens/tokens.ts';

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
