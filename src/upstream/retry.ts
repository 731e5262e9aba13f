import { codedError } from '../errors.ts';
import { tellRequestId, type AuthorizedAnswer } from './authorize.ts';
import type { UpstreamResult } from './upstream-answer.ts';

const FIRST_WAIT_MS = 100;
/** Instead of a longer wait, the error is reported with the time after which the caller can try again. */
const LONGEST_WAIT_MS = 10_000;

export type Unanswered = Exclude<AuthorizedAnswer, UpstreamResult>;

/**
 * The error of an answer without a result, and how long to wait before the request is sent again, ms. It is sent again
 * after failures that may be temporary: no connection, 5xx, and 429 unless its Retry-After is longer than 10 s. Infinity:
 * never. A random part of up to half is added to the wait, as long as it does not exceed 10 s.
 *
 * @param attempt how often it was sent so far
 */
export function failureOf(answer: Unanswered, attempt: number) {
  const { error, wait = Infinity } = judge(answer, FIRST_WAIT_MS * 2 ** (attempt - 1));
  tellRequestId(error, answer);
  if (wait > LONGEST_WAIT_MS) return { error, wait: Infinity };
  return { error, wait: Math.min(wait * (1 + Math.random() / 2), LONGEST_WAIT_MS) };
}

/** @param backoff in ms, like the `wait` that is returned; without one, sending again cannot help */
function judge(answer: Unanswered, backoff: number) {
  switch (answer.kind) {
    case 'failure':
      return { error: answer.error, wait: answer.isTemporary ? backoff : undefined };
    case 'rate-limited': {
      const { retryAfter } = answer;
      const seconds = retryAfter === undefined ? null : Math.max(1, Math.ceil(retryAfter));
      return {
        error: codedError(
          'UPSTREAM_RATE_LIMITED',
          'The recruiting service limits the rate of requests. Try again ' +
            (seconds === null ? 'later.' : `in ${seconds} s.`),
          { extensions: { retryAfter: seconds } },
        ),
        wait: retryAfter === undefined ? backoff : Math.max(retryAfter * 1000, backoff),
      };
    }
  }
}
