import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import type { Failure, Priority, Sender } from '../../src/upstream/request.ts';
import { retry } from '../../src/upstream/retry.ts';
import { createTurns } from '../../src/upstream/turns.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { answer, heldRequests, query, senderWith } from './held-requests.ts';

/** The most drains in flight, by the number of slots: at least a quarter is reserved for other requests. */
const MOST_DRAINS = new Map([1, 2, 3, 4, 8].map((slots, at) => [slots, [1, 1, 2, 3, 6][at]!]));

const step = fc.record({
  does: fc.constantFrom('asks', 'asks', 'asks', 'is answered', 'leaves'),
  priority: fc.constantFrom<Priority>('interactive', 'drain'),
  at: fc.nat(99),
});

test('no slot is free while somebody may have it, drains leave a quarter free, and other requests overtake them', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...MOST_DRAINS.keys()),
      fc.array(step),
      async (slots, steps) => {
        const { ask, turns, held } = start(slots);
        const asked: { leaving: AbortController; priority: Priority; isOver: boolean }[] = [];
        const begun = (priority: Priority) =>
          held.sent.filter(({ sender }) => sender.priority === priority).length;
        for (const { does, priority, at } of steps) {
          const drainsBegun = begun('drain');
          const open = asked.filter(({ isOver }) => !isOver);
          if (does === 'asks') {
            const each = { leaving: new AbortController(), priority, isOver: false };
            asked.push(each);
            const end = () => void (each.isOver = true);
            ask(String(asked.length), { priority, signal: each.leaving.signal }).then(end, end);
          } else if (does === 'leaves') open[at % open.length]?.leaving.abort(new Error('left'));
          else held.sent[at % held.sent.length]?.end(answer());
          await setImmediate();
          const { waiting } = turns;
          const stillOpen = asked.filter(({ isOver }) => !isOver);
          const drains = stillOpen.filter((each) => each.priority === 'drain').length;
          const drainsInFlight = drains - waiting.drain;
          const inFlight = stillOpen.length - waiting.interactive - waiting.drain;
          expect(inFlight).toBeLessThanOrEqual(slots);
          expect(drainsInFlight).toBeLessThanOrEqual(MOST_DRAINS.get(slots)!);
          if (inFlight < slots) {
            expect(waiting.interactive).toBe(0);
            if (waiting.drain > 0) expect(drainsInFlight).toBe(MOST_DRAINS.get(slots));
          }
          if (waiting.interactive > 0) expect(begun('drain')).toBe(drainsBegun);
        }
      },
    ),
    { numRuns: randomRuns(1_000) },
  );
});

const LATE = { extensions: { code: 'UPSTREAM_TIMEOUT', limit: 'UPSTREAM_CONCURRENCY' } };
const FULL = {
  message: expect.stringContaining('Nothing was sent'),
  extensions: { code: 'RATE_LIMITED', retryAfter: 5, limit: 'UPSTREAM_CONCURRENCY' },
};

test('a request that gets no turn in time fails unsent', async () => {
  const { ask, clock, held } = start(1);
  void ask('first');
  const late = [ask('late'), ask('late drain', { priority: 'drain' })];
  clock.jump(29 * SECOND);
  expect(await Promise.race([...late, setImmediate('still waiting')])).toBe('still waiting');
  clock.jump(SECOND);
  for (const each of late) expect(await each).toMatchObject({ isUnsent: true, error: LATE });
  expect(held.bodies()).toEqual(['first']);
});

test('when 100 requests per slot wait, a caller with a fair share of them is refused, and others take turns', async () => {
  const { ask, held } = start(1);
  const greedy = { caller: 'greedy' };
  for (let at = 0; at <= 100; at += 1) void ask(`g${at}`, greedy);
  expect(await ask('one more', greedy)).toMatchObject({ isUnsent: true, error: FULL });
  for (const label of ['o0', 'o1']) void ask(label, { caller: 'other' });
  for (let at = 0; at < 4; at += 1) {
    held.sent[at]!.end(answer());
    await setImmediate();
  }
  expect(held.bodies()).toEqual(['g0', 'g1', 'o0', 'g2', 'o1']);
});

test('a query that finds no turn to be sent again in time fails with the error of its attempt', async () => {
  const { turns, held, clock } = start(1);
  const again = retry(clock)(turns.inTurn(held.send));
  const error = codedError('UPSTREAM_BAD_RESPONSE', 'It has status 503.');
  const failure: Failure = { kind: 'failure', isTemporary: true, error };
  const first = again(query('first'), senderWith());
  held.sent[0]!.end(failure);
  await setImmediate();
  void again(query('second'), senderWith());
  clock.jump(SECOND);
  await setImmediate();
  clock.jump(30 * SECOND);
  expect(await first).toBe(failure);
});

function start(concurrency: number) {
  const clock = new ManualClock();
  const turns = createTurns({ concurrency, clock });
  const held = heldRequests();
  const send = turns.inTurn(held.send);
  const ask = async (body: string, sender: Partial<Sender> = {}) =>
    send(query(body), senderWith(sender));
  return { ask, clock, turns, held };
}
