import fc from 'fast-check';
import { INTERRUPTIONS, KINDS, type Interruption } from './database.ts';
import { POINTS, type Trap } from './process.ts';
import { ODDITIES, type Oddity } from './service.ts';

/** The faults of the replicas, their service and their database; everything else in a history follows from the plan. */
export interface Plan {
  readonly replicas: number;
  readonly sharesFolder: boolean;
  /** Seconds. */
  readonly life: number;
  readonly revokesOnRefresh: boolean;
  readonly refusesEarly: boolean;
  /** A refresh token must not be sent again after an exchange without a clear answer. Never if it `refusesEarly`. */
  readonly revokesOnReuse: boolean;
  /** All replicas start at once on a token link; otherwise the store has a set. */
  readonly fromLink: boolean;
  readonly isPooled: boolean;
  /** The clock of the database is this far ahead, ms. */
  readonly ahead: number;
  readonly steps: readonly Step[];
  /** For delays and jitter. */
  readonly seed: number;
}

/** A step, and the wait before it, ms. */
export type Step = { readonly after: number } & Deed;

export type Deed =
  /** All replicas meet an expired token together. */
  | { readonly do: 'meet'; readonly oddity: Oddity | null }
  | { readonly do: 'ask'; readonly by: number; readonly times: number }
  | { readonly do: 'kill' | 'terminate' | 'start'; readonly by: number }
  | { readonly do: 'stop' | 'cutOff' | 'folderFull'; readonly by: number; readonly forMs: number }
  /** The next exchange runs into a trap. */
  | { readonly do: 'trap'; readonly trap: Trap; readonly oddity: Oddity | null }
  | { readonly do: 'interrupt'; readonly interruption: Interruption; readonly times: number }
  | {
      readonly do: 'databaseDown' | 'databaseFull' | 'unreachable' | 'blocked';
      readonly forMs: number;
    }
  | { readonly do: 'goBack' | 'restoreBackup'; readonly lost: number }
  | { readonly do: 'empty' }
  | { readonly do: 'clock'; readonly by: number; readonly ms: number }
  | { readonly do: 'databaseClock'; readonly ms: number };

/** Selects a replica, whatever their number is. */
const by = fc.nat({ max: 9 });
const forMs = fc.constantFrom(800, 5_000, 40_000, 200_000);
const of = <const T extends string>(...what: T[]) => fc.constantFrom(...what);

// The slow ones are often cut short by another fault.
const someOddity = fc.constantFrom<Oddity>(
  ...ODDITIES,
  ...(['late answer', 'no answer', 'processed after its client has given up'] as const),
);
const oddity = fc.option(someOddity, { freq: 4 });

/** The moments at which most is at stake, and how often each of them is chosen. */
const MOMENTS: readonly [number, Omit<Trap, 'forMs'>][] = [
  [2, { point: 'claim committed', effect: 'kill', delayMs: 0 }],
  [8, { point: 'answer', effect: 'kill', delayMs: 45 }],
  [4, { point: 'emergency file', effect: 'kill', delayMs: 0 }],
  [4, { point: 'save', effect: 'kill', delayMs: 0 }],
  [4, { point: 'save committed', effect: 'kill', delayMs: 0 }],
  [5, { point: 'claim committed', effect: 'stop', delayMs: 0 }],
  [3, { point: 'answer', effect: 'stop', delayMs: 0 }],
  [4, { point: 'answer', effect: 'terminate', delayMs: 10 }],
  [4, { point: 'claim', effect: 'cutOff', delayMs: 0 }],
  [6, { point: 'answer', effect: 'noRoom', delayMs: 0 }],
  [6, { point: 'answer', effect: 'cutOff', delayMs: 0 }],
];

const trap: fc.Arbitrary<Trap> = fc.oneof(
  ...MOMENTS.map(([weight, moment]) => ({
    weight,
    arbitrary: fc.constant({ ...moment, forMs: 200_000 }),
  })),
  {
    weight: 10,
    arbitrary: fc.record({
      point: fc.constantFrom(...POINTS),
      effect: of('kill', 'stop', 'terminate', 'cutOff', 'noRoom'),
      delayMs: fc.constantFrom(0, 0, 60),
      forMs: fc.constantFrom(2_000, 200_000),
    }),
  },
);

const interrupted: fc.Arbitrary<Deed> = fc.record({
  do: of('interrupt'),
  interruption: fc.record({
    kind: fc.constantFrom(...KINDS, 'claim', 'save', 'save'),
    what: fc.constantFrom(...INTERRUPTIONS),
  }),
  // A call is repeated once; after that the pair is unsaved.
  times: fc.constantFrom(1, 1, 8),
});

const lost = fc.integer({ min: 1, max: 5 });

const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 14, arbitrary: fc.record({ do: of('trap'), trap, oddity }) },
  { weight: 22, arbitrary: fc.record({ do: of('meet'), oddity: someOddity }) },
  { weight: 8, arbitrary: interrupted },
  {
    weight: 5,
    arbitrary: fc.record({
      do: of('databaseDown', 'databaseFull', 'unreachable', 'blocked'),
      forMs,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: of('ask'), by, times: fc.constantFrom(3, 20) }) },
  { weight: 3, arbitrary: fc.record({ do: of('kill', 'terminate', 'start', 'start'), by }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: of('stop', 'cutOff', 'cutOff', 'folderFull'), by, forMs }),
  },
  { weight: 4, arbitrary: fc.record({ do: of('goBack', 'goBack', 'restoreBackup'), lost }) },
  { weight: 2, arbitrary: fc.record({ do: of('empty') }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: of('databaseClock'),
      ms: fc.constantFrom(-600_000, -86_400_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: of('clock'),
      by,
      ms: fc.constantFrom(-86_400_000, -60_000, 90_000, 86_400_000, 31_536_000_000),
    }),
  },
);

const after = fc.constantFrom(0, 60, 200, 2_000, 20_000, 40_000);

export const plan: fc.Arbitrary<Plan> = fc.record({
  replicas: fc.oneof(
    { weight: 30, arbitrary: fc.constant(2) },
    { weight: 10, arbitrary: fc.constant(3) },
    // They cost much: each of them reads the store after every commit of another one.
    { weight: 1, arbitrary: fc.integer({ min: 4, max: 10 }) },
  ),
  sharesFolder: fc.boolean(),
  life: fc.constantFrom(120, 900, 900),
  revokesOnRefresh: fc.boolean(),
  refusesEarly: fc.constantFrom(false, false, true),
  revokesOnReuse: fc.constantFrom(false, false, false, true),
  fromLink: fc.boolean(),
  isPooled: fc.boolean(),
  ahead: fc.constantFrom(0, -300_000, 3_600_000),
  steps: fc.array(
    fc.tuple(after, deed).map(([ms, next]): Step => ({ after: ms, ...next })),
    { maxLength: 9, size: 'max' },
  ),
  seed: fc.noShrink(fc.integer()),
});
