import type { ExecutionResult } from 'graphql';
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
  // What will be masked has no code yet.
  const isUnexpected = first.extensions?.['code'] === undefined && isOurs(first);
  return isUnexpected ? 'INTERNAL_SERVER_ERROR' : knownCode(first.extensions?.['code']);
}

function isOurs(error: Error & { readonly originalError?: unknown }): boolean {
  return error.name !== 'GraphQLError' || error.originalError instanceof Error;
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
  429: 'RATE_LIMITED',
};
