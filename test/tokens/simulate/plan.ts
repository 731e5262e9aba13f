import fc from 'fast-check';
import { KINDS } from './database.ts';
import { POINTS, type Trap } from './process.ts';
import { ODDITIES, type Oddity } from './service.ts';

const of = <const T extends string | number | boolean>(...what: T[]) => fc.constantFrom(...what);
/** Selects a replica, whatever their number is. */
const by = fc.nat({ max: 9 });
const forMs = of(800, 5_000, 40_000, 200_000);

const oddity = fc.constantFrom<Oddity>(
  ...ODDITIES,
  // The slow ones are often cut short by another fault.
  ...(['late answer', 'no answer', 'processed after its client has given up'] as const),
);

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
      delayMs: of(0, 0, 60),
      forMs: of(2_000, 200_000),
    }),
  },
);

const often = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });

const deed = fc.oneof(
  // The next exchange runs into a trap.
  often(
    14,
    fc.record({ do: of('trap'), trap, oddity: fc.option(oddity, { freq: 4, nil: undefined }) }),
  ),
  // All replicas meet an expired token together.
  often(22, fc.record({ do: of('meet'), oddity })),
  // A call is repeated once; after that the pair is unsaved.
  often(8, fc.record({ do: of('loseAnswer'), kind: of(...KINDS, 'save'), times: of(1, 1, 8) })),
  often(4, fc.record({ do: of('databaseDown', 'unreachable'), forMs })),
  often(2, fc.record({ do: of('ask'), by, times: of(3, 20) })),
  often(3, fc.record({ do: of('kill', 'terminate', 'start', 'start'), by })),
  often(4, fc.record({ do: of('stop', 'cutOff', 'cutOff'), by, forMs })),
  // The database loses its last commits; a backup is restored while no process runs.
  often(
    4,
    fc.record({
      do: of('goBack', 'goBack', 'restoreBackup'),
      lost: fc.integer({ min: 1, max: 5 }),
    }),
  ),
  often(2, fc.record({ do: of('empty') })),
);

/** Ms. */
const after = of(0, 60, 200, 2_000, 20_000, 40_000);

/** The faults of the replicas, their service and their database; everything else in a history follows from the plan. */
export const plan = fc.record({
  replicas: of(2, 2, 2, 3),
  /** Of emergency files. */
  sharesFolder: fc.boolean(),
  /** Of access tokens, seconds. */
  life: of(120, 900, 900),
  revokesOnRefresh: fc.boolean(),
  refusesEarly: of(false, false, true),
  /** It cannot be asked about an access token. Never if it `refusesEarly`. */
  isMute: of(false, false, false, true),
  steps: fc.array(
    fc.tuple(after, deed).map(([ms, next]) => ({ after: ms, ...next })),
    { maxLength: 9, size: 'max' },
  ),
  /** For delays. */
  seed: fc.noShrink(fc.integer()),
});

export type Plan = typeof plan extends fc.Arbitrary<infer P> ? P : never;
export type Step = Plan['steps'][number];
