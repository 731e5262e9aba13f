import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Work on something large. It yields about every `STEP` bytes; the code that runs it decides whether the event loop
 * then gets a turn.
 */
export type Pausable<T> = Generator<undefined, T, undefined>;

/** Bytes that are read or written between two yields, roughly. */
export const STEP = 64 * 1024;

/** Does all the work now. */
export function atOnce<T>(work: Pausable<T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/**
 * Does the work in turns of the event loop, one step in each.
 *
 * @throws the abort reason of the signal; the rest is then not done
 */
export async function inTurns<T>(work: Pausable<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    const { done, value } = work.next();
    if (done) return value;
    await nextTurn();
  }
}
