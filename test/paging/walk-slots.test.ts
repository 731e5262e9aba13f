import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ReadPage } from '../../src/paging/page.ts';
import { walkInTurn, WalkSlots, type WalkTurn } from '../../src/paging/walk-slots.ts';
import type { WalkedPages } from '../../src/paging/walk.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';

/** Operations that may wait for each walk that may run. */
const MAY_WAIT = 100;

test('MAX_DRAINS walks run at a time; the others wait, and all come to an end', async () => {
  const slots = new WalkSlots(2, new ManualClock());
  const begun: number[] = [];
  const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
  const walks = ends.map(async ({ promise }, number) => {
    const walk = walkInTurn(slots, turnOf(), () => {
      begun.push(number);
      return onePage(promise);
    });
    for await (const _ of walk);
  });
  await setImmediate();
  expect(begun).toEqual([0, 1]);
  ends[1]!.resolve();
  await walks[1];
  await setImmediate();
  expect(begun).toEqual([0, 1, 2]);
  for (const { resolve } of ends) resolve();
  await Promise.all(walks);
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

test('callers take turns: a caller with many walks does not make others wait for all of them', async () => {
  const slots = new WalkSlots(1, new ManualClock());
  const served: string[] = [];
  const giveBack = await slots.take(turnOf('greedy'));
  const callers = [...Array.from({ length: 10 }, () => 'greedy'), 'modest'];
  const waiting = callers.map(async (caller) => {
    const done = await slots.take(turnOf(caller));
    served.push(caller);
    done();
  });
  giveBack();
  await Promise.all(waiting);
  expect(served.indexOf('modest')).toBeLessThanOrEqual(1);
});

test('a walk that gets no slot within 30 s is refused, and the running one continues', async () => {
  const clock = new ManualClock();
  const slots = new WalkSlots(1, clock);
  const giveBack = await slots.take(turnOf());
  const refused = slots.take(turnOf()).catch((error: unknown) => error);
  await setImmediate();
  clock.jump(30 * SECOND - 1);
  await setImmediate();
  expect(slots.waiting).toBe(1);
  clock.jump(1);
  expect(await refused).toMatchObject({
    message: expect.stringMatching(/could not begin within 30 s.*MAX_DRAINS/),
    extensions: { code: 'RATE_LIMITED', retryAfter: 30, limit: 'MAX_DRAINS' },
  });
  expect(slots).toMatchObject({ taken: 1, waiting: 0 });
  giveBack();
  expect(slots.taken).toBe(0);
});

test('a caller with too many waiting operations is refused, and another caller is not', async () => {
  const slots = new WalkSlots(1, new ManualClock());
  const giveBack = await slots.take(turnOf('greedy'));
  const waiting = Array.from({ length: MAY_WAIT }, () => slots.take(turnOf('greedy')));
  await expect(slots.take(turnOf('greedy'))).rejects.toMatchObject({
    extensions: { code: 'RATE_LIMITED', retryAfter: 5 },
  });
  waiting.push(slots.take(turnOf('modest')));
  expect(slots.waiting).toBe(MAY_WAIT + 1);
  giveBack();
  await Promise.all(waiting.map(async (taken) => (await taken)()));
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

test('an operation with a thousand lists waits as one, and a slot for one of them is a slot for all', async () => {
  const clock = new ManualClock();
  const slots = new WalkSlots(1, clock);
  const turn = turnOf();
  const taken: (() => void)[] = [];
  const walks = Array.from({ length: 1_000 }, async () => taken.push(await slots.take(turn)));
  for (let served = 1; served <= walks.length; served += 1) {
    await setImmediate();
    expect(taken).toHaveLength(served);
    if (served % 100 === 0) clock.jump(MINUTE);
    taken.at(-1)!();
  }
  await Promise.all(walks);
});

test('a walk whose reader does not read on gives its slot to others, and is not refused when it resumes', async () => {
  const clock = new ManualClock();
  const slots = new WalkSlots(1, clock);
  const walk = walkInTurn(slots, turnOf(), () => pages(3));
  await walk.next();
  await setImmediate();
  expect(slots.taken).toBe(1);
  await setImmediate();
  expect(slots.taken).toBe(0);
  const giveBack = await slots.take(turnOf());
  const resuming = walk.next();
  for (let minute = 0; minute < 5; minute += 1) {
    clock.jump(MINUTE);
    await setImmediate();
  }
  expect(slots).toMatchObject({ taken: 1, waiting: 1 });
  giveBack();
  expect((await resuming).done).toBe(false);
  await walk.return();
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

function turnOf(caller: string = crypto.randomUUID()): WalkTurn {
  return { caller, operation: {}, signal: new AbortController().signal };
}

async function* onePage(until: Promise<void>): WalkedPages {
  await until;
  yield* pages(1);
}

async function* pages(count: number): WalkedPages {
  const page = { records: [], ids: [], hasNextPage: true, endCursor: null, size: 1 };
  for (let read = 0; read < count; read += 1) yield { page: new ReadPage(null, page), offsets: [] };
}
