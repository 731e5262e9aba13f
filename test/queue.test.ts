import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Queue } from '../src/queue.ts';
import { ManualClock } from './support/random/manual-clock.ts';

test('owners take turns, and one whose entry leaves keeps its place', async () => {
  const clock = new ManualClock();
  const queue = new Queue(clock, () => new Error('too late'));
  const begun: string[] = [];
  const leaving = new AbortController();
  const { signal } = new AbortController();
  const wait = (entry: string, leaves = signal) =>
    queue.wait({ owner: entry[0]!, signal: leaves, patience: 1_000 }).then(() => begun.push(entry));
  const left = wait('a0', leaving.signal);
  for (const entry of ['a1', 'a2', 'b1', 'c1', 'a3']) void wait(entry);
  leaving.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  while (queue.begin()) await setImmediate();
  // Their time no longer matters.
  clock.jump(1_000);
  expect(begun).toEqual(['a1', 'b1', 'c1', 'a2', 'a3']);
  expect(queue.size).toBe(0);
  // Those who no longer wait have no share.
  for (const entry of ['a4', 'b2', 'b3']) void wait(entry);
  expect([queue.isFull('a', 3), queue.isFull('b', 3)]).toEqual([false, true]);
});
