import type { GraphQLError } from 'graphql';
import type { Cause } from '../cause.ts';
import type { ErrorCode } from '../errors.ts';

/** Receives what happens to requests to the service. */
export interface UpstreamTelemetry {
  /** Called for each attempt. */
  sending(cause: Cause | undefined): ReportedRequest;
  /** Called for each failure after which a request is sent again. @param attempt how often it was sent so far */
  retrying(cause: Cause | undefined, code: unknown, attempt: number): void;
  breakerOpened(error: GraphQLError): void;
  breakerClosed(downMs: number): void;
}

export interface ReportedRequest {
  /** Headers to send with the request. */
  readonly headers: Readonly<Record<string, string>>;
  /** @param requestId the service's own id of the request */
  answered(requestId: string | undefined): void;
  /** @param error why the answer was missing or unusable; contains nothing that the service wrote */
  ended(outcome: UpstreamOutcome, error?: GraphQLError): void;
}

/** A label of metrics. `left`: all callers of the request left. */
type UpstreamOutcome = 'ok' | 'graphql_error' | 'left' | ErrorCode | 'OTHER';

export const noTelemetry: UpstreamTelemetry = {
  sending: () => ({ headers: {}, answered: () => {}, ended: () => {} }),
  retrying: () => {},
  breakerOpened: () => {},
  breakerClosed: () => {},
};
