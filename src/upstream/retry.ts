import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { AuthorizedAnswer } from './authorize.ts';
import type { UpstreamResult } from './request.ts';

interface RetryOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How often to send at most. */
  readonly attempts: number;
  /** By `clock.elapsed`: nothing is sent again later than this. */
  readonly until: number;
  /** Called for each failure after which the request is sent again. */
  readonly onRetry: (code: unknown, attempt: number) => void;
  /** Called with the last answer if it was not a result. */
  readonly onGiveUp: (answer: AuthorizedAnswer) => void;
}

const FIRST_WAIT_MS = 100;
/** Instead of a longer wait, the caller is told when to come back. */
const LONGEST_WAIT_MS = 10_000;

/**
 * Sends again after failures that may be temporary: no connection, 5xx, and 429 unless its Retry-After is too long.
 *
 * @throws coded errors, and the abort reason of the signal
 */
export async function retry(
  send: () => Promise<AuthorizedAnswer>,
  { clock, signal, attempts, until, onRetry, onGiveUp }: RetryOptions,
): Promise<UpstreamResult> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await send();
    if (answer.kind === 'result') return answer;
    const { error, wait } = failureOf(answer, FIRST_WAIT_MS * 2 ** (attempt - 1));
    const isLast = attempt >= attempts || wait === undefined || clock.elapsed() + wait > until;
    if (isLast || wait > LONGEST_WAIT_MS) {
      onGiveUp(answer);
      if (answer.kind === 'failure' && answer.result) return answer.result;
      throw error;
    }
    onRetry(error.extensions['code'], attempt);
    await clock.sleep(wait * (1 + Math.random() / 2), signal);
  }
}

/** @param backoff in ms, like the `wait` that is returned; without one, sending again cannot help */
function failureOf(answer: Exclude<AuthorizedAnswer, UpstreamResult>, backoff: number) {
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
