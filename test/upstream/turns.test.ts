import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createTurns } from '../../src/upstream/turns.ts';

test('turns are given first come, first served, and only as many as are free', async () => {
  const turns = createTurns(2);
  const taken: number[] = [];
  const ends: (() => void)[] = [];
  const all = [0, 1, 2, 3, 4].map(async (number) => {
    ends[number] = await turns.take();
    taken.push(number);
  });
  await setImmediate();
  expect(taken).toEqual([0, 1]);
  // Two at the same moment are for two who wait, not twice for one.
  ends[1]!();
  ends[0]!();
  await setImmediate();
  expect(taken).toEqual([0, 1, 2, 3]);
  ends[3]!();
  await Promise.all(all);
  expect(taken).toEqual([0, 1, 2, 3, 4]);
});

test('who leaves while waiting is let go at once, and does not get a turn', async () => {
  const turns = createTurns(1);
  const end = await turns.take();
  const leaver = new AbortController();
  const left = turns.take(leaver.signal);
  const next = turns.take();
  leaver.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  end();
  expect(await next).toBeTypeOf('function');
});

test('who left already does not wait at all', async () => {
  const turns = createTurns(1);
  await expect(turns.take(AbortSignal.abort(new Error('left')))).rejects.toThrow('left');
  expect(await turns.take()).toBeTypeOf('function');
});

test('a turn that was given and left at the same moment is not lost', async () => {
  const turns = createTurns(1);
  const end = await turns.take();
  const leaver = new AbortController();
  const given = turns.take(leaver.signal);
  end();
  leaver.abort();
  (await given)();
  expect(await turns.take()).toBeTypeOf('function');
});
