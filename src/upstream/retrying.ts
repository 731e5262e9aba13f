import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { AuthorizedAnswer } from './authorizing.ts';
import type { UpstreamResult } from './read-response.ts';

interface RetryOptions {
  clock: Clock;
  signal: AbortSignal;
  /** By `clock.elapsed`: nothing is sent again later than this. */
  until: number;
  /** Told of an answer that was no result, and after which nothing is sent any more. */
  gaveUp: (answer: AuthorizedAnswer) => void;
  /** How often to send at most. 4 unless told. */
  attempts?: number;
  random?: () => number;
  /** Told of each failure after which it is sent again. */
  onRetry?: (code: unknown, attempt: number) => void;
}

const ATTEMPTS = 4;
const FIRST_WAIT_MS = 100;
/** Longer than this nobody is kept waiting: the caller is told when to come back instead. */
const LONGEST_WAIT_MS = 10_000;

/** Sends again after failures that may pass: no connection, 5xx, and 429 when its Retry-After is bearable. */
export async function retrying(
  send: () => Promise<AuthorizedAnswer>,
  {
    clock,
    signal,
    until,
    gaveUp,
    attempts = ATTEMPTS,
    random = Math.random,
    onRetry,
  }: RetryOptions,
): Promise<UpstreamResult> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await send();
    if (answer.kind === 'result') return answer;
    const { error, wait } = failure(answer, FIRST_WAIT_MS * 2 ** (attempt - 1));
    const isOver = attempt >= attempts || wait === undefined || clock.elapsed() + wait > until;
    if (isOver || wait > LONGEST_WAIT_MS) {
      gaveUp(answer);
      if (answer.kind === 'bad' && answer.result) return answer.result;
      throw error;
    }
    onRetry?.(error.extensions['code'], attempt);
    await clock.sleep(wait * (1 + random() / 2), signal);
  }
}

function failure(answer: Exclude<AuthorizedAnswer, { kind: 'result' }>, backoff: number) {
  switch (answer.kind) {
    case 'bad':
      return { error: answer.error, wait: answer.mayPass ? backoff : undefined };
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
