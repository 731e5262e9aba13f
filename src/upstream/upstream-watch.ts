import type { GraphQLError } from 'graphql';
import type { Cause } from '../cause.ts';
import { knownCode, type ErrorCode } from '../errors.ts';
import type { OnBreakerChange } from './breaker.ts';
import type { ReadAs, UpstreamAnswer } from './read-response.ts';

/** What came of one request; `left`: nobody waited for it any more. */
export type UpstreamOutcome = 'ok' | 'graphql_error' | 'left' | ErrorCode | 'OTHER';

/** Who is told of the requests that go out, and for whom they are sent. */
export interface UpstreamWatch {
  sending(cause: Cause | undefined): SentRequest;
  /** Gives who is told of each failure after which a request is sent again. */
  again(cause: Cause | undefined): (code: unknown, attempt: number) => void;
  readonly breaker: OnBreakerChange;
}

export interface SentRequest {
  /** They travel with it. */
  readonly headers: Readonly<Record<string, string>>;
  answered(status: number): void;
  /** Called for each answer that is GraphQL, before `ended`. */
  read(how: ReadAs): void;
  /** `why`, where nothing usable came: for the log, with nothing in it that the service wrote. */
  ended(outcome: UpstreamOutcome, why?: GraphQLError): void;
}

export const unwatched: UpstreamWatch = {
  sending: () => ({ headers: {}, answered: () => {}, read: () => {}, ended: () => {} }),
  again: () => () => {},
  breaker: () => {},
};

export function outcomeOf(answer: UpstreamAnswer): UpstreamOutcome {
  switch (answer.kind) {
    case 'result':
      return answer.hasErrors ? 'graphql_error' : 'ok';
    case 'unauthorized':
      return 'UPSTREAM_UNAUTHORIZED';
    case 'rate-limited':
      return 'UPSTREAM_RATE_LIMITED';
    case 'bad':
      return knownCode(answer.error.extensions['code']);
  }
}
