import type { GraphQLError } from 'graphql';
import type { Cause } from './request.ts';
import type { ErrorCode } from '../errors.ts';

/** Receives what happens to requests to the service. */
export interface UpstreamTelemetry {
  /** Called for each attempt. */
  sending(cause: Cause | undefined): ReportEnd;
  breakerOpened(error: GraphQLError): void;
  breakerClosed(downMs: number): void;
}

/** @param error why the answer was missing or unusable; contains nothing that the service wrote */
type ReportEnd = (outcome: UpstreamOutcome, error?: GraphQLError) => void;

/** A label of metrics. `left`: all callers of the request left. */
type UpstreamOutcome = 'ok' | 'graphql_error' | 'left' | ErrorCode | 'OTHER';

export const noTelemetry: UpstreamTelemetry = {
  sending: () => () => {},
  breakerOpened: () => {},
  breakerClosed: () => {},
};
