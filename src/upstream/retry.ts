import type { Clock } from '../clock.ts';
import type { Failure, Wrapper } from './request.ts';

const MAX_ATTEMPTS = 4;
/** From the first attempt to the last one, ms. */
const PATIENCE_MS = 30_000;
const FIRST_WAIT_MS = 100;
/** If the wait would be longer, the error is reported with the time after which the caller can try again. */
const LONGEST_WAIT_MS = 10_000;

/**
 * Sends a query again after failures that may be temporary: no connection, 5xx, and a limited rate unless the service
 * wants a pause of more than 10 s. A mutation is sent once, since a failed one may have been executed.
 *
 * @param random 0 to 1
 */
export function retry(clock: Clock, random = Math.random): Wrapper {
  return (next) => async (request, sender) => {
    const until = clock.elapsed() + PATIENCE_MS;
    const attempts = request.kind === 'query' ? MAX_ATTEMPTS : 1;
    let before: Failure | undefined;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await next(request, sender);
      if (outcome.kind === 'answer') return outcome;
      // It says that nothing was sent, which would be false after an attempt.
      if (outcome.isUnsent && before) return before;
      before = outcome;
      const wait = waitAfter(outcome, attempt);
      if (attempt >= attempts || clock.elapsed() + wait > until) return outcome;
      await clock.sleep(wait, sender.signal);
    }
  };

  /**
   * Returns how long to wait before a request is sent again, ms; Infinity to give up. Up to half of the wait is added
   * at random, so that requests that failed together are not sent again together.
   *
   * @param attempt how often it was sent so far
   */
  function waitAfter({ isTemporary, retryAfterMs = 0 }: Failure, attempt: number): number {
    const wait = Math.max(retryAfterMs, FIRST_WAIT_MS * 2 ** (attempt - 1));
    if (!isTemporary || wait > LONGEST_WAIT_MS) return Infinity;
    return Math.min(wait * (1 + random() / 2), LONGEST_WAIT_MS);
  }
}
