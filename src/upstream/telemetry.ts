import type { GraphQLError } from 'graphql';
import type { Cause } from '../cause.ts';
import { knownCode, type ErrorCode } from '../errors.ts';
import type { OnBreakerChange } from './breaker.ts';
import type { ReadAs, UpstreamAnswer } from './read-response.ts';

/** Receives what happens to requests to the service. */
export interface UpstreamTelemetry {
  /** Called for each attempt. */
  sending(cause: Cause | undefined): ReportedRequest;
  /** Called for each failure after which a request is sent again. @param attempt how often it was sent so far */
  retrying(cause: Cause | undefined, code: unknown, attempt: number): void;
  readonly breakerChanged: OnBreakerChange;
}

export interface ReportedRequest {
  /** Headers to send with the request. */
  readonly headers: Readonly<Record<string, string>>;
  /** @param requestId the service's own id of the request */
  answered(status: number, requestId: string | undefined): void;
  /** Called for each answer that is GraphQL, before `ended`. */
  read(how: ReadAs): void;
  /** @param error why there was no usable answer; contains nothing that the service wrote */
  ended(outcome: UpstreamOutcome, error?: GraphQLError): void;
}

/** A label of metrics. `left`: all callers of the request left. */
export type UpstreamOutcome = 'ok' | 'graphql_error' | 'left' | ErrorCode | 'OTHER';

export function outcomeOf(answer: UpstreamAnswer): UpstreamOutcome {
  switch (answer.kind) {
    case 'result':
      return answer.hasErrors ? 'graphql_error' : 'ok';
    case 'unauthorized':
      return 'UPSTREAM_UNAUTHORIZED';
    case 'rate-limited':
      return 'UPSTREAM_RATE_LIMITED';
    case 'failure':
      return knownCode(answer.error.extensions['code']);
  }
}

export const noTelemetry: UpstreamTelemetry = {
  sending: () => ({ headers: {}, answered: () => {}, read: () => {}, ended: () => {} }),
  retrying: () => {},
  breakerChanged: () => {},
};
