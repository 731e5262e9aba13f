import fc from 'fast-check';
import { POINTS, type Trap } from './process.ts';
import { DAMAGES, INTERRUPTIONS, type Interruption } from './database.ts';
import { ODDITIES, type EarlyRefusal, type Oddity } from './service.ts';

/** The faults of the replicas, their service and their database; everything else in a history follows from the plan. */
export interface Plan {
  readonly replicas: number;
  /** Seconds. */
  readonly life: number;
  readonly revokesOnRefresh: boolean;
  /** How the service refuses an exchange before the access token has expired, if it does. */
  readonly refusesEarly: EarlyRefusal | null;
  /** All replicas start at once on a token link; otherwise the store has a set. */
  readonly fromLink: boolean;
  readonly isPooled: boolean;
  /** The clock of the database is this far ahead, ms. */
  readonly ahead: number;
  /** Taken before the replicas start. */
  readonly early: readonly Step[];
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
  | { readonly do: 'stop'; readonly by: number; readonly forMs: number }
  /** The next exchange runs into a trap. */
  | { readonly do: 'trap'; readonly trap: Trap; readonly oddity: Oddity | null }
  | { readonly do: 'interrupt'; readonly interruption: Interruption; readonly times: number }
  | { readonly do: 'cutOff'; readonly by: number; readonly forMs: number }
  | {
      readonly do: 'databaseDown' | 'databaseFull' | 'unreachable' | 'blocked';
      readonly forMs: number;
    }
  /** A command moves the set to another database. It may be killed, or get no answer. */
  | {
      readonly do: 'move';
      readonly interruption: Interruption | null;
      readonly times: number;
      /** So long after the source has given the set away. */
      readonly killAfterMs: number | null;
    }
  /** Somebody deletes or alters rows of the tokens. */
  | { readonly do: 'damage'; readonly what: (typeof DAMAGES)[number] }
  | { readonly do: 'failOver'; readonly lost: number }
  | { readonly do: 'restoreBackup'; readonly lost: number }
  /** The database goes back under running replicas, and one is restarted and gets a request at that moment. */
  | {
      readonly do: 'olderCopy';
      readonly by: number;
      readonly lost: number;
      readonly askAfterMs: number;
    }
  | {
      readonly do: 'disk';
      readonly by: number;
      readonly state: 'full' | 'broken';
      readonly forMs: number;
    }
  | { readonly do: 'clock'; readonly by: number; readonly ms: number }
  /** The clock of the database is set back: claims are dated ahead then. */
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
  [4, { point: 'save', effect: 'kill', delayMs: 0 }],
  [4, { point: 'save committed', effect: 'kill', delayMs: 0 }],
  [5, { point: 'claim committed', effect: 'stop', delayMs: 0 }],
  [3, { point: 'answer', effect: 'stop', delayMs: 0 }],
  [4, { point: 'answer', effect: 'terminate', delayMs: 10 }],
  [4, { point: 'claim', effect: 'cutOff', delayMs: 0 }],
  [6, { point: 'answer', effect: 'noRoom', delayMs: 0 }],
  [6, { point: 'answer', effect: 'strand', delayMs: 0 }],
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
      effect: of('kill', 'stop', 'terminate', 'cutOff', 'noRoom', 'strand'),
      delayMs: fc.constantFrom(0, 0, 60),
      forMs: fc.constantFrom(2_000, 200_000),
    }),
  },
);
const trapped: fc.Arbitrary<Deed> = fc.record({ do: of('trap'), trap, oddity });
const what = fc.constantFrom(...INTERRUPTIONS);
const interrupted: fc.Arbitrary<Deed> = fc.record({
  do: of('interrupt'),
  interruption: fc.record({
    purpose: of(
      'prepare',
      'read',
      'claim',
      'claim',
      'save',
      'save',
      'save',
      'endAttempt',
      'import',
    ),
    what,
  }),
  // A call is repeated once; after some more the pair is in the rescue file.
  times: fc.constantFrom(1, 1, 8),
});
const ofMove: fc.Arbitrary<Interruption> = fc.record({ purpose: of('move', 'import'), what });
const interruption: fc.Arbitrary<Interruption | null> = fc.option(ofMove);
const killAfterMs: fc.Arbitrary<number | null> = fc.option(fc.constantFrom(0, 20, 60), { freq: 2 });
const moved: fc.Arbitrary<Deed> = fc.record({
  do: of('move'),
  interruption,
  // A call is repeated once.
  times: fc.constantFrom(1, 2, 2),
  killAfterMs,
});
const spoiled: fc.Arbitrary<Deed> = fc.record({
  do: of('disk'),
  by,
  state: of('full', 'broken'),
  forMs,
});

const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 14, arbitrary: trapped },
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
  { weight: 1, arbitrary: fc.record({ do: of('stop'), by, forMs }) },
  { weight: 2, arbitrary: fc.record({ do: of('cutOff'), by, forMs }) },
  { weight: 3, arbitrary: fc.record({ do: of('failOver'), lost: fc.integer({ min: 1, max: 4 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: of('restoreBackup'), lost: fc.integer({ min: 2, max: 6 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: of('olderCopy'),
      by,
      lost: fc.integer({ min: 2, max: 6 }),
      askAfterMs: fc.constantFrom(30, 100, 500),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: of('damage'), what: fc.constantFrom(...DAMAGES) }) },
  { weight: 2, arbitrary: spoiled },
  { weight: 6, arbitrary: moved },
  {
    weight: 2,
    arbitrary: fc.record({
      do: of('databaseClock'),
      ms: fc.constantFrom(-600_000, -86_400_000, -31_536_000_000),
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
const step = (done: fc.Arbitrary<Deed>): fc.Arbitrary<Step> =>
  fc.tuple(after, done).map(([ms, nextDeed]) => ({ after: ms, ...nextDeed }));

/** The first refresh of all replicas meets the first steps. */
export const plan: fc.Arbitrary<Plan> = fc.record({
  replicas: fc.oneof(
    { weight: 30, arbitrary: fc.constant(2) },
    { weight: 10, arbitrary: fc.constant(3) },
    // They cost much: each of them reads the store after every commit of another one.
    { weight: 1, arbitrary: fc.integer({ min: 4, max: 10 }) },
  ),
  life: fc.constantFrom(120, 900, 900),
  revokesOnRefresh: fc.boolean(),
  fromLink: fc.boolean(),
  isPooled: fc.boolean(),
  ahead: fc.constantFrom(0, -300_000, 3_600_000),
  early: fc
    .tuple(
      fc.oneof(
        { weight: 4, arbitrary: fc.record({ do: of('meet'), oddity: someOddity }) },
        { weight: 5, arbitrary: fc.record({ do: of('trap'), trap, oddity: fc.constant(null) }) },
        { weight: 1, arbitrary: fc.record({ do: of('trap'), trap, oddity: someOddity }) },
      ),
      fc.option(fc.oneof(interrupted, interrupted, spoiled), { freq: 3 }),
    )
    .map((deeds) => deeds.filter((each) => each !== null).map((each) => ({ after: 0, ...each }))),
  steps: fc.array(step(deed), { maxLength: 7, size: 'max' }),
  seed: fc.noShrink(fc.integer()),
  refusesEarly: fc.constantFrom<EarlyRefusal | null>(
    null,
    null,
    null,
    null,
    'as spent',
    'with status 403',
  ),
});
