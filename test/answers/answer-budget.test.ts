// Imports the engine's insides, and goes when the engine is replaced.
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createAnswerBudget, type HeldBytes } from '../../src/memory/answer-budget.ts';
import { codeOf } from '../../src/errors.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const RUNS = randomRuns(500);

const MAX = 100;
const PATIENCE = 30 * SECOND;

interface Operation {
  readonly held: HeldBytes;
  readonly pieces: Set<{ readonly bytes: number }>;
  waits: number;
  isOver: boolean;
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('hold'), by: fc.nat(7), piece: fc.nat(11) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('release'), by: fc.nat(7), piece: fc.constant(0) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('pass'),
      by: fc.integer({ min: 1, max: 20 }),
      piece: fc.constant(0),
    }),
  },
);

test('answers never hold more bytes than allowed, no operation waits forever, and all bytes are released', async () => {
  const seen = { waits: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 60, size: 'max' }),
      fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 12, maxLength: 12 }),
      async (steps, sizes) => {
        const clock = new ManualClock();
        const budget = createAnswerBudget(MAX, clock);
        const pieces = sizes.map((bytes) => ({ bytes }));
        const open = (): Operation => ({
          held: budget.open(),
          pieces: new Set(),
          waits: 0,
          isOver: false,
        });
        const operations = Array.from({ length: 8 }, open);
        const all = new Set(operations);

        const check = (): void => {
          const held = new Set(
            [...all].flatMap((operation) => (operation.isOver ? [] : [...operation.pieces])),
          );
          const bytes = [...held].reduce((sum, piece) => sum + piece.bytes, 0);
          expect(budget.load.bytes).toBe(bytes);
          expect(budget.load.bytes).toBeLessThanOrEqual(MAX);
          // At least one holder does not wait, so it will release its pieces.
          const holders = [...all].filter(
            (operation) => !operation.isOver && operation.pieces.size > 0,
          );
          if (budget.load.waiting > 0)
            expect(holders.some((holder) => holder.waits === 0)).toBe(true);
        };

        for (const { kind, by, piece } of steps) {
          const operation = operations[by % 8]!;
          if (kind === 'hold') seen.waits += hold(operation, pieces[piece]!) ? 1 : 0;
          else if (kind === 'pass') clock.jump(by * SECOND);
          else {
            release(operation);
            operations[by] = open();
            all.add(operations[by]);
          }
          await setImmediate();
          check();
        }
        clock.jump(PATIENCE);
        await setImmediate();
        expect(budget.load.waiting).toBe(0);
        expect([...all].every((operation) => operation.waits === 0)).toBe(true);
        for (const operation of all) release(operation);
        expect(budget.load).toEqual({ bytes: 0, waiting: 0 });
      },
    ),
    { numRuns: RUNS },
  );
  expect(seen.waits).toBeGreaterThan(RUNS);
}, 60_000);

/** @returns whether the operation has to wait */
function hold(operation: Operation, piece: { readonly bytes: number }): boolean {
  const taken = () => {
    if (!operation.isOver) operation.pieces.add(piece);
  };
  try {
    const waiting = operation.held.hold(piece, piece.bytes);
    if (!waiting) {
      taken();
      return false;
    }
    operation.waits += 1;
    void waiting.then(taken, refused).finally(() => (operation.waits -= 1));
    return true;
  } catch (error) {
    refused(error);
    return false;
  }
}

function refused(error: unknown): void {
  expect(['RATE_LIMITED', 'OPERATION_TOO_COMPLEX']).toContain(codeOf(error));
}

function release(operation: Operation): void {
  operation.isOver = true;
  operation.held.release();
}

test('an operation that is too large on its own is refused without a time to try again', () => {
  const budget = createAnswerBudget(MAX, new ManualClock());
  const operation = budget.open();
  void operation.hold({}, 60);
  expect(() => operation.hold({}, 60)).toThrow(
    expect.objectContaining({ extensions: { code: 'OPERATION_TOO_COMPLEX' } }),
  );
});

test('waiting pieces are limited too, since they are in memory: more are refused at once', () => {
  const budget = createAnswerBudget(MAX, new ManualClock());
  void budget.open().hold({}, 90);
  expect(budget.open().hold({}, 60)).toBeInstanceOf(Promise);
  const third = budget.open();
  expect(() => third.hold({}, 60)).toThrow(
    expect.objectContaining({ extensions: expect.objectContaining({ code: 'RATE_LIMITED' }) }),
  );
});
