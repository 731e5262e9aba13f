// Imports the engine's insides, and goes when the engine is replaced.
import { expect, onTestFinished, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { samplesOf } from '../support/processes/exposition.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest } from '../support/imitations/scripted.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';
import { codesOf } from '../support/gateway/codes.ts';

const GREEDY = 'the greedy caller';
const MODEST = 'the modest caller';
const auth = {
  apiKeys: [
    entryFor(GREEDY, 'greedy', 'read', 'drain'),
    entryFor(MODEST, 'modest', 'read', 'drain'),
  ],
  jwt: undefined,
};

/** Operations that may wait for each drain that may run. */
const MAY_WAIT = 100;

test('a drain that gets no slot within 30 s is refused, and the running one continues', async () => {
  const world = await startWorld();
  const running = world.drain(GREEDY, 100);
  await world.begun();
  const refused = world.drain(MODEST, 101);
  await world.waiting(1);
  world.clock.jump(30 * SECOND - 1);
  await world.waiting(1);
  world.clock.jump(1);
  expect((await refused).errors).toMatchObject([
    {
      message: expect.stringMatching(/could not begin within 30 s.*MAX_DRAINS/),
      path: ['allPersons'],
      extensions: { code: 'RATE_LIMITED', retryAfter: 30 },
    },
  ]);
  expect(world.pages()).toBe(1);
  world.open();
  expect(codesOf(await running)).toEqual([]);
  expect(codesOf(await world.drain(MODEST, 101))).toEqual([]);
});

test('a caller with too many waiting drains is refused, and another caller is not', async () => {
  const world = await startWorld();
  const running = world.drain(GREEDY, 51);
  await world.begun();
  const waiting = Array.from({ length: MAY_WAIT }, (_, at) => world.drain(GREEDY, 52 + at));
  await world.waiting(MAY_WAIT);
  const { errors } = await world.drain(GREEDY, 199);
  expect(errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED', retryAfter: 5 } }]);
  const other = world.drain(MODEST, 198);
  await world.waiting(MAY_WAIT + 1);
  expect(world.pages()).toBe(1);
  world.open();
  for (const answer of await Promise.all([running, other, ...waiting])) {
    expect(codesOf(answer)).toEqual([]);
  }
});

test('a drain whose caller leaves while it waits makes room for another', async () => {
  const world = await startWorld();
  const running = world.drain(GREEDY, 51);
  await world.begun();
  const leaving = new AbortController();
  const left = world.drain(GREEDY, 52, leaving.signal);
  const waiting = Array.from({ length: MAY_WAIT - 1 }, (_, at) => world.drain(GREEDY, 53 + at));
  await world.waiting(MAY_WAIT);
  leaving.abort();
  await expect(left).rejects.toThrow(/abort/i);
  await world.waiting(MAY_WAIT - 1);
  const last = world.drain(GREEDY, 199);
  await world.waiting(MAY_WAIT);
  world.open();
  for (const answer of await Promise.all([running, last, ...waiting])) {
    expect(codesOf(answer)).toEqual([]);
  }
});

/** One drain at a time, in front of a service that holds every answer until it is opened. */
async function startWorld() {
  const clock = new ManualClock();
  const gateway = await startGatewayOverFake(
    { persons: 200 },
    { clock, config: { auth, maxDrains: 1 } },
  );
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const gate = Promise.withResolvers<void>();
  gateway.upstream.answer(after(gate.promise, honest));
  return {
    clock,
    drain: (key: string, limit: number, signal?: AbortSignal) =>
      gateway.ask(`{ allPersons(limit: ${limit}) { id } }`, undefined, {
        headers: { 'x-api-key': key },
        ...(signal && { signal }),
      }),
    begun: () => gateway.upstream.arrived(1),
    /** Resolves when this many drains wait. */
    waiting: async (count: number) => {
      await expect
        .poll(
          async () =>
            samplesOf(await gateway.gateway.metrics.text()).get('recruiting_drains_waiting'),
          { interval: 5, timeout: 10_000 },
        )
        .toBe(count);
    },
    pages: () => gateway.upstream.received.length,
    open: () => gate.resolve(),
  };
}
