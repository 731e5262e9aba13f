import fc from 'fast-check';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { DAY, HOUR, ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import type { TokenFault } from '../../src/sandbox/token-answers.ts';
import { startKept, type Kept } from '../support/tokens/kept.ts';
import {
  codesOf,
  PERSON,
  reply,
  sentAgain,
  startScripted,
  watchStore,
} from '../support/tokens/tokens.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';

type Step =
  | { do: 'ask'; times: number }
  | { do: 'expire' }
  | { do: 'oddly'; how: keyof typeof oddities }
  | { do: 'fail'; what: 'read' | 'claim' | 'save' | 'endAttempt' }
  | { do: 'heal' }
  | { do: 'pass'; ms: number }
  | { do: 'wall'; ms: number }
  | { do: 'endAttempt' }
  | { do: 'restart' };

const oddities = {
  'cut before it was processed': 'drop-before',
  'cut after it was processed': 'drop-after',
  '500': reply(500, 'Oops'),
  'not now': reply(429, '', { 'retry-after': '5' }),
  'without a pair': reply(200, '<html>'),
} satisfies Record<string, TokenFault>;

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      times: fc.integer({ min: 1, max: 8 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('expire' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('oddly' as const),
      how: fc.constantFrom(...(Object.keys(oddities) as (keyof typeof oddities)[])),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('fail' as const),
      what: fc.constantFrom('read', 'claim', 'save', 'endAttempt'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('heal' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(SECOND, 3 * MINUTE, HOUR, 17 * HOUR),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('wall' as const),
      ms: fc.constantFrom(-DAY, DAY, -MINUTE),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('endAttempt' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);

/** Histories in which random runs failed once. */
const FOUND: Step[][] = [
  // One caller more than there are slots, and hours pass for the one that waits for a slot.
  [
    { do: 'ask', times: 3 },
    { do: 'ask', times: 3 },
    { do: 'ask', times: 6 },
    { do: 'ask', times: 5 },
    { do: 'pass', ms: 17 * HOUR },
    { do: 'expire' },
  ],
  // Refused finally, and the store could not record it: the spent token was sent again every few minutes.
  [
    { do: 'oddly', how: 'cut after it was processed' },
    { do: 'expire' },
    { do: 'fail', what: 'endAttempt' },
    { do: 'ask', times: 1 },
    { do: 'pass', ms: 17 * HOUR },
  ],
  // Uncertain, and no claim is possible: one attempt a second, until the time of the test was over.
  [
    { do: 'oddly', how: 'cut before it was processed' },
    { do: 'expire' },
    { do: 'ask', times: 1 },
    { do: 'fail', what: 'claim' },
    { do: 'pass', ms: 17 * HOUR },
    { do: 'pass', ms: 17 * HOUR },
  ],
];

test('in any order of events, no refresh token is sent again after its answer, and the last pair is kept', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      const world = await startWorld();
      for (const one of steps) await world.take(one);
      await world.heal();
      await world.clock.asleep();
      const { service, store, clock } = world;

      expect(sentAgain(service.exchanges)).toEqual([]);
      expect(service.exchanges.length).toBeLessThanOrEqual(allowed(steps, clock.elapsed() - DAY));
      const kept = await store.read();
      expect(kept?.pair.refreshToken).toBe(world.lastAnswered ?? kept?.pair.refreshToken);
      expect(world.codes.filter((code) => !isKnown(code, world.mostAtOnce))).toEqual([]);

      // A wall clock that was set back extends a claim, and has no other effect.
      service.tokenAnswers.clear();
      clock.jump((2 + countOf(steps, 'wall')) * DAY);
      await clock.pass(10 * MINUTE);
      const after = codesOf(await world.ask());
      const { lost } = (await store.read())!;
      expect(lost ? [[], ['TOKENS_LOST']] : [[]]).toContainEqual(after);
      await world.end();
    }),
    { numRuns: randomRuns(40), examples: FOUND.map((steps): [Step[]] => [steps]) },
  );
});

/** The errors that callers may get; a failing store is nothing that they can act on. */
const CODES = new Set<unknown>([
  'UPSTREAM_UNREACHABLE',
  // A refresh that takes longer than a caller waits.
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_UNAUTHORIZED',
  'TOKENS_MISSING',
  'TOKENS_LOST',
  'INTERNAL_SERVER_ERROR',
]);

/** Requests to the service at a time. */
const PLACES = 16;

/**
 * Answers arrive over real sockets, and the clock of the test is faster than they are. A caller who waits for a slot
 * gets an error after half a minute; no caller does, as long as there is a slot for each.
 */
function isKnown(code: unknown, mostAtOnce: number): boolean {
  return CODES.has(code) || (code === 'UPSTREAM_TIMEOUT' && mostAtOnce > PLACES);
}

/** One exchange for the import, one for each expiry, and one more for each fault. */
function allowed(steps: readonly Step[], elapsed: number): number {
  const reasons = ['expire', 'oddly', 'fail', 'wall', 'restart'] as const;
  return reasons.reduce((sum, reason) => sum + countOf(steps, reason), 2 + elapsed / (0.6 * DAY));
}

function countOf(steps: readonly Step[], what: Step['do']): number {
  return steps.filter((one) => one.do === what).length;
}

async function startWorld() {
  const service = await startScripted();
  const store = watchStore();
  const clock = new ManualClock();
  const codes: unknown[] = [];
  const asking: Promise<unknown>[] = [];
  let unanswered = 0;
  let mostAtOnce = 0;
  let lastAnswered: string | undefined;
  service.tokenAnswers.every(1, (body) => {
    lastAnswered = (JSON.parse(body) as { refresh_token: string }).refresh_token;
    return { status: 200, body };
  });
  let kept = await start();

  return {
    service,
    store,
    clock,
    codes,
    get mostAtOnce() {
      return mostAtOnce;
    },
    get lastAnswered() {
      return lastAnswered;
    },
    ask: () => kept.ask(PERSON),
    take,
    heal,
    end: () => kept.stop(),
  };

  function start(): Promise<Kept> {
    return startKept(service, { clock, store, config: { upstreamConcurrency: PLACES } });
  }

  async function take(one: Step): Promise<void> {
    switch (one.do) {
      case 'ask':
        for (let time = 0; time < one.times; time += 1) {
          asking.push(ask());
        }
        break;
      case 'expire':
        service.expire();
        break;
      case 'oddly':
        service.tokenAnswers.next(oddities[one.how]);
        break;
      case 'fail':
        store.failing.add(one.what);
        break;
      case 'heal':
        await heal();
        break;
      case 'pass':
        await clock.pass(one.ms);
        break;
      case 'wall':
        clock.setWall(one.ms);
        break;
      case 'endAttempt':
        await settle();
        break;
      case 'restart': {
        const stopping = kept.stop();
        await heal();
        await stopping;
        kept = await start();
        break;
      }
    }
    await setImmediate();
  }

  async function ask(): Promise<void> {
    unanswered += 1;
    mostAtOnce = Math.max(mostAtOnce, unanswered);
    codes.push(...codesOf(await kept.ask(personUnlikeOthers())));
    unanswered -= 1;
  }

  async function heal(): Promise<void> {
    store.failing.clear();
    clock.jump(SECOND);
    await settle();
  }

  /** Until every caller has an answer; callers who wait for another attempt get the time for it. */
  async function settle(): Promise<void> {
    const all = Promise.all(asking.splice(0)).then(() => true);
    for (let turn = 1; !(await Promise.race([all, setImmediate(false)])); turn += 1) {
      if (turn % 20 === 0) clock.jump(SECOND);
    }
  }
}
