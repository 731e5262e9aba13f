import { GraphQLError } from 'graphql';
import { codedError, codeOf, type ErrorCode } from '../../errors.ts';

/** What a cursor has no part in. */
const NOT_OF_A_CURSOR: readonly unknown[] = [
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_UNAUTHORIZED',
  'TOKENS_MISSING',
  'TOKENS_LOST',
] satisfies ErrorCode[];

/** Whether the failure of a page may be due to the cursor that it was asked with. Only another page can tell. */
export function mayBeRefusal(error: unknown, after: string | null, signal: AbortSignal): boolean {
  return after !== null && !signal.aborted && !NOT_OF_A_CURSOR.includes(codeOf(error));
}

/** Where a cursor points cannot be told any more. */
export function placeLost(cause?: unknown): GraphQLError {
  const said =
    cause instanceof GraphQLError ? ` The recruiting service said: ${cause.message}` : '';
  return codedError(
    'CURSOR_INVALID',
    'The list has changed since this cursor was given out: its record was not found any more, and nothing tells surely where it stood. ' +
      `Leave the cursor out to start anew.${said}`,
    { cause },
  );
}
