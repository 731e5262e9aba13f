import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock, type Clock } from '../../src/clock.ts';
import { json, text } from '../service/replies.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';
import { startHeldUpstream, type HeldUpstream } from './held-upstream.ts';

const DRAIN = { priority: 'drain' } as const;

test('an interactive request overtakes waiting drain requests and has reserved slots', async () => {
  await using upstream = await startHeldUpstream({ concurrency: 4 });
  const { ask, release, sent, service } = upstream;
  const answers = ['d1', 'd2', 'd3', 'd4', 'd5'].map((label) => ask(label, DRAIN));
  await service.arrived(3);
  answers.push(ask('i1'));
  await service.arrived(4);
  answers.push(ask('i2'), ask('i3'));
  release('d1');
  await service.arrived(5);
  release('d2');
  await service.arrived(6);
  release('i1');
  await service.arrived(7);
  release('i2');
  await service.arrived(8);
  expect(sent()).toEqual(['d1', 'd2', 'd3', 'i1', 'i2', 'i3', 'd4', 'd5']);
  await everybodyIsAnswered(upstream, answers);
});

test.each([
  [1, 1],
  [2, 1],
  [3, 2],
  [8, 6],
  [16, 12],
])('of %i slots, drains have at most %i', async (concurrency, most) => {
  await using upstream = await startHeldUpstream({ concurrency });
  const { ask, release, sent, service } = upstream;
  const drains = Array.from({ length: concurrency + 1 }, (_, index) => `d${index}`);
  const answers = drains.map((label) => ask(label, DRAIN));
  await service.arrived(most);
  const others = Array.from({ length: concurrency - most }, (_, index) => `i${index}`);
  answers.push(...others.map((label) => ask(label)));
  await service.arrived(concurrency);
  expect(sent().toSorted()).toEqual([...drains.slice(0, most), ...others].toSorted());
  for (const label of [...drains, ...others]) release(label);
  await Promise.all(answers);
});

test('a drain request that is sent again keeps its priority', async () => {
  const asleep = Promise.withResolvers<void>();
  const woken = Promise.withResolvers<void>();
  const sleep: Clock['sleep'] = (ms, signal) => {
    // A long sleep is the time limit of a waiting request, which begins long before.
    if (ms > 10_000) return systemClock.sleep(ms, signal);
    asleep.resolve();
    return woken.promise;
  };
  await using upstream = await startHeldUpstream({
    concurrency: 1,
    clock: { ...systemClock, sleep },
  });
  const { ask, sent, service } = upstream;
  const hold = Promise.withResolvers<void>();
  service.answer(text('', 503), async (...exchange) => {
    await hold.promise;
    return json({ data: {} })(...exchange);
  });
  const answers = [ask('drain', DRAIN)];
  await asleep.promise;
  answers.push(ask('first'));
  await service.arrived(2);
  woken.resolve();
  await setImmediate();
  answers.push(ask('second'));
  hold.resolve();
  await Promise.all(answers);
  expect(sent()).toEqual(['drain', 'first', 'second', 'drain']);
});

test('a request without a turn in time fails, and is not sent', async () => {
  const clock = new ManualClock();
  await using upstream = await startHeldUpstream({ concurrency: 2, clock });
  const { ask, sent, service } = upstream;
  const answers = [ask('1'), ask('2')];
  await service.arrived(2);
  const late = Promise.allSettled([ask('3'), ask('4', DRAIN)]);
  await clock.asleep();
  clock.jump(29 * SECOND);
  expect(await Promise.race([late, setImmediate('waiting')])).toBe('waiting');
  clock.jump(SECOND);
  for (const outcome of await late) {
    expect(outcome).toMatchObject({
      reason: {
        message: expect.stringContaining('Nothing was sent'),
        extensions: { code: 'UPSTREAM_TIMEOUT' },
      },
    });
  }
  expect(sent().toSorted()).toEqual(['1', '2']);
  await everybodyIsAnswered(upstream, answers);
  const next = ask('5');
  upstream.release('5');
  await next;
});

test('when too many requests wait, the next one is refused with retryAfter, and is not sent', async () => {
  await using upstream = await startHeldUpstream({ concurrency: 1 });
  const { ask, sent, service } = upstream;
  const caller = new AbortController();
  const first = ask('first');
  await service.arrived(1);
  const waiting = Array.from({ length: 100 }, (_, index) =>
    ask(`w${index}`, { signal: caller.signal }),
  );
  const gone = Promise.allSettled(waiting);
  await expect(ask('one more')).rejects.toMatchObject({
    message: expect.stringContaining('Nothing was sent'),
    extensions: { code: 'RATE_LIMITED', retryAfter: 5 },
  });
  caller.abort();
  await gone;
  expect(sent()).toEqual(['first']);
  await everybodyIsAnswered(upstream, [first]);
});

test('a caller with many waiting requests does not delay other callers, and they are not refused for it', async () => {
  await using upstream = await startHeldUpstream({ concurrency: 1 });
  const { ask, release, sent, service } = upstream;
  const leaving = new AbortController();
  const greedy = { caller: 'greedy', signal: leaving.signal };
  const first = ask('first');
  await service.arrived(1);
  const gone = Promise.allSettled(
    Array.from({ length: 100 }, (_, index) => ask(`w${index}`, greedy)),
  );
  const refused = { extensions: { code: 'RATE_LIMITED' } };
  await expect(ask('one more', greedy)).rejects.toMatchObject(refused);
  const others = ['o0', 'o1'].map((label) => ask(label, { caller: 'other' }));
  for (const [index, label] of ['first', 'w0', 'o0', 'w1'].entries()) {
    release(label);
    await service.arrived(index + 2);
  }
  expect(sent()).toEqual(['first', 'w0', 'o0', 'w1', 'o1']);
  leaving.abort();
  await gone;
  await everybodyIsAnswered(upstream, [first, ...others]);
});

async function everybodyIsAnswered(
  { release, sent }: HeldUpstream,
  answers: readonly Promise<unknown>[],
): Promise<void> {
  for (const label of sent()) release(label);
  await Promise.all(answers);
}
