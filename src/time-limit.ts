import { setImmediate } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** There was no answer in time. The outcome of the call is unknown. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
}

const STEP_MS = 250;

/** Made once: a new one for each call, with its stack, costs more than the call of a store. */
const SETTLED = new DOMException('The work has settled.', 'AbortError');

/**
 * Returns the result of the work, unless that takes too long. It is waited for in steps, so that a time in which this
 * process or the machine stood still counts as one step: on waking, an answer may be there that nobody could take.
 *
 * @param limit ms; asked again after each step
 * @param whose the one that has to answer, for the error
 * @throws NoAnswerError when the limit is exceeded; the work itself continues
 */
export function within<T>(
  clock: Clock,
  work: Promise<T>,
  limit: () => number,
  whose: string,
): Promise<T> {
  const settled = new AbortController();
  const end = () => settled.abort(SETTLED);
  work.then(end, end);
  return Promise.race([work, givenUp()]);

  async function givenUp(): Promise<never> {
    // Most calls are settled by then, and need no timer.
    await setImmediate();
    settled.signal.throwIfAborted();
    for (let waited = 0; waited < limit(); waited += STEP_MS) {
      await clock.sleep(STEP_MS, settled.signal);
    }
    throw new NoAnswerError(`no answer of ${whose} within ${limit() / 1000} s`);
  }
}
