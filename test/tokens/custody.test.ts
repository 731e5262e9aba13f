import assert from 'node:assert/strict';
import fc from 'fast-check';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import type { TokenStore } from '../../src/tokens/store/token-store.ts';
import {
  answeredIn,
  custodyWorld,
  rescuedIn,
  type CustodyWorld,
  type ModelProcess,
  type Oddity,
} from '../support/tokens/custody-world.ts';
import { DAY, HOUR, type ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { timedDatabase } from '../support/tokens/timed-store.ts';

const PROCESSES = 3;
/** Those with real files take longer. `npm run simulate` has more of the others. */
const RUNS = { sqlite: 40, timed: 150 };

type Step =
  | { do: 'ask'; by: number; times: number }
  | { do: 'expire' }
  | { do: 'oddly'; how: Oddity }
  | { do: 'fail'; by: number; what: 'read' | 'claim' | 'save' | 'endAttempt' }
  | { do: 'heal' }
  | { do: 'pass'; ms: number }
  | { do: 'wall'; ms: number }
  | { do: 'turns'; count: number }
  | { do: 'start' | 'stop' | 'kill' | 'freeze' | 'thaw'; by: number }
  | { do: 'rush'; by: number; turns: number; befalls: 'nothing' | 'kill' | 'stop' | 'nap' };

const by = fc.nat({ max: PROCESSES - 1 });
const of = <const T extends string>(...what: T[]) => fc.constantFrom(...what);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: of('rush'),
      by,
      turns: fc.nat({ max: 14 }),
      befalls: of('nothing', 'nothing', 'kill', 'stop', 'nap'),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: of('ask'), by, times: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 5, arbitrary: fc.record({ do: of('expire') }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: of('oddly'),
      how: of('drop before', 'drop after', 'late', 'not now', 'unclear', 'named', 'unreachable'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: of('fail'),
      by,
      what: of('read', 'claim', 'save', 'save', 'endAttempt'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: of('heal') }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: of('pass'),
      ms: fc.constantFrom(SECOND, 3 * MINUTE, HOUR, 17 * HOUR),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: of('wall'), ms: fc.constantFrom(-DAY, DAY, -MINUTE) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: of('turns'), count: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 6, arbitrary: fc.record({ do: of('start', 'start', 'start', 'stop', 'kill'), by }) },
  { weight: 2, arbitrary: fc.record({ do: of('freeze', 'thaw'), by }) },
);

const stores: [string, number, (folder: string, clock: ManualClock) => () => TokenStore][] = [
  [
    'on one SQLite file',
    RUNS.sqlite,
    (folder, { now }) =>
      () =>
        openSqliteStore(join(folder, 'tokens.db'), { now }),
  ],
  [
    'on a store whose claims have a deadline',
    RUNS.timed,
    (_folder, clock) => {
      const start = clock.now() - clock.elapsed();
      return timedDatabase(() => start + clock.elapsed()).open;
    },
  ],
];

/** Histories that random runs found once. */
const FOUND: [Step[], boolean][] = [
  [
    // The process sleeps while an answer arrives that could not be saved then: another one wakes at the same time.
    [
      { do: 'fail', by: 0, what: 'save' },
      { do: 'oddly', how: 'late' },
      { do: 'start', by: 1 },
      { do: 'pass', ms: 17 * HOUR },
    ],
    true,
  ],
  [
    // Killed before the answer arrives; the others take turns for a lock while a day passes at once.
    [
      { do: 'oddly', how: 'late' },
      { do: 'rush', by: 0, turns: 0, befalls: 'kill' },
      { do: 'turns', count: 1 },
    ],
    false,
  ],
];

test.each(stores)(
  'up to three processes %s: no refresh token is sent after its answer was received, and the last pair is kept',
  { timeout: 240_000 },
  async (_name, usual, openStore) => {
    const numRuns = randomRuns(usual);
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 30 }),
        fc.boolean(),
        async (steps, revokeOnRefresh) => {
          runs += 1;
          const world = await custodyWorld(openStore, revokeOnRefresh);
          try {
            await run(world, steps);
          } finally {
            await world.end();
          }
        },
      ),
      { numRuns, examples: FOUND },
    );
    expect(runs).toBe(numRuns);
  },
);

async function run(world: CustodyWorld, steps: readonly Step[]): Promise<void> {
  const { clock, service } = world;
  const crew = new Crew(world);
  await crew.start(0);
  for (const one of steps) {
    await crew.take(one);
    expect(service.violations).toEqual([]);
    await crew.expectKept();
  }
  await crew.heal();
  service.honestly();
  expect(service.exchanges.length).toBeLessThanOrEqual(allowed(steps, clock.elapsed() - DAY));

  // All processes continue, and have time.
  for (let index = 0; index < PROCESSES; index += 1) await crew.start(index);
  await crew.pass(20 * HOUR, 20 * MINUTE);
  // A process that waits for the lock of a file waits in real time, in which all these hours can pass: that ends first.
  crew.codes.push(...(await crew.askAll()));
  await crew.pass(10 * MINUTE, 5 * SECOND);
  const codes = await crew.askAll();
  expect(service.violations).toEqual([]);
  await crew.expectKept();
  // A set is lost only if the service spent a token and no process received its answer.
  const wasSilent = service.exchanges.some(({ gave, received }) => gave && !received);
  expect(codes.filter((code) => !(wasSilent && code === 'TOKENS_LOST'))).toEqual(
    codes.filter((code) => code === undefined),
  );
  expect(crew.codes.filter((code) => !KNOWN.has(code))).toEqual([]);
  await crew.stopAll();
}

const KNOWN = new Set<unknown>([
  undefined,
  'UPSTREAM_UNREACHABLE',
  // A refresh that takes longer than a caller waits.
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_RATE_LIMITED',
  'TOKENS_LOST',
  // The store fails, or another process does not finish.
  'INTERNAL_SERVER_ERROR',
  'Error: UPSTREAM_UNAUTHORIZED',
]);

/** One exchange for the import, one for each expiry, one more for each fault, a few a day. */
function allowed(steps: readonly Step[], elapsed: number): number {
  const reasons = ['expire', 'rush', 'oddly', 'fail', 'kill', 'freeze', 'stop'] as const;
  const count = steps.filter((one) => reasons.some((reason) => reason === one.do)).length;
  return 3 + 2 * count + (4 * elapsed) / DAY;
}

class Crew {
  readonly codes: unknown[] = [];
  readonly #world: CustodyWorld;
  readonly #members: (ModelProcess | undefined)[] = [];
  #asking: Promise<unknown>[] = [];

  constructor(world: CustodyWorld) {
    this.#world = world;
  }

  async start(index: number): Promise<void> {
    this.#members[index] ??= await this.#world.start();
  }

  async take(one: Step): Promise<void> {
    const { clock, service } = this.#world;
    switch (one.do) {
      case 'ask':
        for (let time = 0; time < one.times; time += 1) this.#ask(one.by);
        break;
      case 'expire':
        service.expire();
        break;
      case 'oddly':
        service.oddly(one.how);
        break;
      case 'fail':
        this.#members[one.by]?.failing.add(one.what);
        break;
      case 'heal':
        await this.heal();
        break;
      case 'pass':
        await this.pass(one.ms);
        break;
      case 'wall':
        clock.setWall(one.ms);
        break;
      case 'turns':
        await this.#turns(one.count);
        break;
      case 'rush':
        await this.#rush(one);
        break;
      case 'freeze':
      case 'thaw':
        this.#members[one.by]?.[one.do]();
        break;
      case 'start':
      case 'stop':
      case 'kill':
        await this[one.do](one.by);
        break;
    }
  }

  /** All meet an expired token together, and a fault hits one of them during the exchange. */
  async #rush({ by: index, turns, befalls }: Extract<Step, { do: 'rush' }>): Promise<void> {
    const everybodyAsks = () => this.#members.forEach((_, member) => this.#ask(member));
    everybodyAsks();
    await this.#turns(20);
    this.#world.service.expire();
    everybodyAsks();
    await this.#turns(turns);
    if (befalls === 'kill' || befalls === 'stop') await this[befalls](index);
    if (befalls !== 'nap') return;
    this.#members[index]?.freeze();
    await this.pass(4 * MINUTE, 10 * SECOND);
    everybodyAsks();
    await this.#turns(20);
    this.#members[index]?.thaw();
  }

  async #turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) await setImmediate();
  }

  #ask(index: number): void {
    const asked = this.#members[index]?.ask().then((code) => void this.codes.push(code));
    if (asked) this.#asking.push(asked);
  }

  async stop(index: number): Promise<void> {
    const member = this.#members[index];
    this.#members[index] = undefined;
    if (!member) return;
    member.thaw();
    await this.#until(member.stop());
  }

  async kill(index: number): Promise<void> {
    const member = this.#members[index];
    this.#members[index] = undefined;
    await member?.kill();
  }

  async heal(): Promise<void> {
    for (const member of this.#living()) {
      member.failing.clear();
      member.thaw();
    }
    await this.#until(Promise.all(this.#asking.splice(0)));
  }

  /** Time passes for all processes, whatever they wait for. */
  async pass(ms: number, atOnce = Math.max(30 * SECOND, ms / 60)): Promise<void> {
    const { clock } = this.#world;
    const end = clock.elapsed() + ms;
    while (clock.elapsed() < end) {
      clock.jump(Math.min(atOnce, end - clock.elapsed()));
      for (let turn = 0; turn < 3; turn += 1) await setImmediate();
    }
  }

  async askAll(): Promise<unknown[]> {
    const all = Promise.all(this.#living().map((member) => member.ask()));
    await this.#until(all);
    return all;
  }

  /**
   * The last pair that a process received is the newest in the store, in a rescue file, or in an answer that is kept.
   */
  async expectKept(): Promise<void> {
    const { service, folder } = this.#world;
    // What was received a moment ago is saved within the same turn.
    await this.#turns(1);
    const last = service.exchanges.findLast(({ received, named }) => received || named);
    if (!last) return;
    const isIn = (text: string) => text.includes(last.gave!);
    const isKept =
      isIn(JSON.stringify(await this.#world.look())) ||
      isIn(rescuedIn(folder)) ||
      isIn(answeredIn(folder));
    assert.ok(isKept, `${last.gave} is kept nowhere`);
  }

  async stopAll(): Promise<void> {
    for (let index = 0; index < PROCESSES; index += 1) await this.stop(index);
  }

  #living(): ModelProcess[] {
    return this.#members.filter((member) => member !== undefined);
  }

  async #until(done: Promise<unknown>): Promise<void> {
    const ended = done.then(() => true);
    for (let turn = 1; !(await Promise.race([ended, setImmediate(false)])); turn += 1) {
      if (turn % 20 === 0) this.#world.clock.jump(SECOND);
    }
  }
}
