import { setImmediate } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** There was no answer in time. What came of the call is unknown. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
}

const STEP_MS = 250;

/**
 * What the work gives, unless that takes too long. It is waited for in steps, so that a time in which this process or
 * the machine stood still counts as one of them: when they wake, an answer may be there that nobody could take.
 *
 * @param limit ms; asked again after each step
 * @param whose the one that has to answer, for the error
 * @throws NoAnswerError when it is given up; the work goes on all the same
 */
export function within<T>(
  clock: Clock,
  work: Promise<T>,
  limit: () => number,
  whose: string,
): Promise<T> {
  const settled = new AbortController();
  const end = () => settled.abort();
  work.then(end, end);
  return Promise.race([work, givenUp()]);

  async function givenUp(): Promise<never> {
    // Most calls are settled by then, and need no timer.
    await setImmediate();
    for (let waited = 0; waited < limit(); waited += STEP_MS) {
      await clock.sleep(STEP_MS, settled.signal);
    }
    throw new NoAnswerError(`no answer of ${whose} within ${limit() / 1000} s`);
  }
}
