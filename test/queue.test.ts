import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Queue, Slots } from '../src/queue.ts';
import { ManualClock, SECOND } from './support/random/manual-clock.ts';

const PATIENCE = { clock: new ManualClock(), tooLate: () => new Error('too late') };

test('owners take turns, and so do the groups of an owner', () => {
  const queue = new Queue<string>(PATIENCE);
  for (const entry of ['a1', 'a2', 'a3']) void queue.wait(entry, { owner: 'a', group: 'many' });
  void queue.wait('a4', { owner: 'a', group: 'single' });
  void queue.wait('b1', { owner: 'b' });
  void queue.wait('c1', { owner: 'c' });
  expect(servedBy(queue)).toEqual(['a1', 'b1', 'c1', 'a4', 'a2', 'a3']);
  expect(queue.size).toBe(0);
});

test('an entry without room keeps its place, and does not hold up the others', () => {
  const queue = new Queue<string>(PATIENCE);
  for (const entry of ['a1', 'a2', 'b1', 'b2']) void queue.wait(entry, { owner: entry[0] });
  expect(servedBy(queue, (entry) => entry !== 'a1' && entry !== 'b2')).toEqual(['a2', 'b1']);
  expect(servedBy(queue)).toEqual(['a1', 'b2']);
});

test('an entry that leaves is refused with its reason, and its owner keeps its place', async () => {
  const queue = new Queue<string>(PATIENCE);
  const leaving = new AbortController();
  const left = queue.wait('a1', { owner: 'a', signal: leaving.signal });
  for (const entry of ['a2', 'b1']) void queue.wait(entry, { owner: entry[0] });
  leaving.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  expect(() => queue.wait('a3', { signal: leaving.signal })).toThrow('left');
  expect(servedBy(queue)).toEqual(['a2', 'b1']);
});

test('a queue is full for owners with a fair share of it', () => {
  const queue = new Queue<number>(PATIENCE);
  void queue.wait(99, { owner: 'a' });
  expect(queue.isFull('a', 2)).toBe(false);
  void queue.wait(100, { owner: 'a' });
  expect(queue.isFull('a', 2)).toBe(true);
  expect(queue.isFull('b', 2)).toBe(false);
  void queue.wait(101, { owner: 'b' });
  expect(queue.isFull('b', 2)).toBe(true);
});

test('no timer runs when nothing waits any more', async () => {
  const clock = new ManualClock();
  const stopped: unknown[] = [];
  const sleep = (ms: number, signal?: AbortSignal) =>
    clock.sleep(ms, signal).catch((error: unknown) => {
      stopped.push(error);
      throw error;
    });
  const queue = new Queue<string>({ ...PATIENCE, clock: { elapsed: clock.elapsed, sleep } });
  const wait = (entry: string) => queue.wait(entry, { until: () => clock.elapsed() + 10 * SECOND });
  void wait('a');
  void wait('b');
  await setImmediate();
  expect(servedBy(queue, (entry) => entry === 'a')).toEqual(['a']);
  await setImmediate();
  expect(stopped).toEqual([]);
  expect(servedBy(queue)).toEqual(['b']);
  await setImmediate();
  expect(stopped).toHaveLength(1);
});

test('an entry is refused at its time, which may become later while it waits', async () => {
  const clock = new ManualClock();
  const late: string[] = [];
  const queue = new Queue<string>({ ...PATIENCE, clock });
  let until = clock.elapsed() + 20 * SECOND;
  const begun = clock.elapsed();
  const wait = (entry: string, time: () => number) => {
    queue.wait(entry, { until: time }).catch(() => late.push(entry));
  };
  wait('moved', () => until);
  wait('early', () => begun + 10 * SECOND);
  void queue.wait('patient');
  await setImmediate();
  clock.jump(10 * SECOND);
  await setImmediate();
  expect(late).toEqual(['early']);
  until += 10 * SECOND;
  clock.jump(10 * SECOND);
  await setImmediate();
  expect(late).toEqual(['early']);
  clock.jump(10 * SECOND);
  await setImmediate();
  expect(late).toEqual(['early', 'moved']);
  expect(servedBy(queue)).toEqual(['patient']);
});

test('no more work is done at a time than there are slots, in order, and a failure frees its slot', async () => {
  const slots = new Slots(2);
  const begun: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const run = (name: string) =>
    slots.run(() => {
      begun.push(name);
      gates.set(name, Promise.withResolvers());
      return gates.get(name)!.promise;
    });
  const outcomes = Promise.allSettled(['1', '2', '3', '4'].map(run));
  expect(begun).toEqual(['1', '2']);
  gates.get('1')!.reject(new Error('failed'));
  await setImmediate();
  expect(begun).toEqual(['1', '2', '3']);
  for (const name of ['2', '3', '4']) {
    gates.get(name)!.resolve();
    await setImmediate();
  }
  expect(begun).toEqual(['1', '2', '3', '4']);
  const failed = (await outcomes).map(({ status }) => status === 'rejected');
  expect(failed).toEqual([true, false, false, false]);
  void ['5', '6', '7'].map(run);
  expect(begun.slice(4)).toEqual(['5', '6']);
});

/** Begins the entries for which there is room, in their order. */
function servedBy(queue: Queue<string>, hasRoom = (_entry: string) => true): string[] {
  const served: string[] = [];
  for (const { entry, begin } of queue) {
    if (!hasRoom(entry)) continue;
    begin();
    served.push(entry);
  }
  return served;
}
