import { GraphQLError, type ExecutionResult } from 'graphql';
import { knownCode, type ErrorCode } from '../../errors.ts';

/**
 * How a request ended: `OK`; the code of its first error, `OTHER` for one of the service's own; `LEFT` when the
 * connection ended before the answer did.
 */
export type Outcome = 'OK' | 'OTHER' | 'LEFT' | ErrorCode;

interface Payload extends Pick<ExecutionResult, 'errors'> {
  readonly incremental?: readonly Pick<ExecutionResult, 'errors'>[];
}

/** Undefined without an error. */
export function errorOf({ errors, incremental = [] }: Payload): Outcome | undefined {
  const first = errors?.[0] ?? incremental.find((part) => part.errors?.length)?.errors?.[0];
  if (!first) return undefined;
  const code: unknown = first.extensions?.['code'];
  // What will be masked has no code yet.
  return code === undefined && isUnexpected(first) ? 'INTERNAL_SERVER_ERROR' : knownCode(code);
}

/** Made neither for callers nor by the service: those are GraphQL errors all the way down. */
function isUnexpected(error: unknown): boolean {
  if (!(error instanceof GraphQLError)) return true;
  return error.originalError !== undefined && isUnexpected(error.originalError);
}

/** Of an answer that is no GraphQL. */
export function outcomeOfStatus(status: number): Outcome {
  if (status < 400) return 'OK';
  if (status >= 500) return 'INTERNAL_SERVER_ERROR';
  return BY_STATUS[status] ?? 'BAD_USER_INPUT';
}

const BY_STATUS: Readonly<Record<number, Outcome>> = {
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  421: 'FORBIDDEN',
  429: 'RATE_LIMITED',
};
