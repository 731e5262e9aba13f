import { GraphQLError } from 'graphql';
import { codedError } from '../../errors.ts';

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
