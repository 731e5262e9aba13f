import { codedError, OperatorError } from '../errors.ts';

/** Nothing changes until the operator has acted. */
const NEEDS_OPERATOR = { needsOperator: true };

/** Follows the beginning of a sentence. */
export const NEW_SET =
  'have an administrator make a new token in the personal account of the recruiting service, and run ' +
  '`tokens import <link>` with the link it shows. A running gateway then goes on by itself.';

export function missingError() {
  return new OperatorError(
    'TOKENS_MISSING',
    `The token store is empty. If TOKEN_STORE is right, ${NEW_SET}`,
    NEEDS_OPERATOR,
  );
}

export function movedError(to: string) {
  return new OperatorError(
    'TOKENS_MISSING',
    `The token set was moved to another store (${to}), and cannot be refreshed from this one. Set TOKEN_STORE to that ` +
      'one, and restart the gateway.',
    NEEDS_OPERATOR,
  );
}

/** @param hasEnded whether its lifetime is over, by the clock of the store; otherwise the service refuses it */
export function lostError(hasEnded: boolean) {
  const what = hasEnded
    ? 'The refresh token has reached its end by the clock of the token store.'
    : 'The service refuses the refresh token: it is spent, because an answer never arrived or the store was replaced by an ' +
      'older copy of it, or it was used elsewhere or revoked.';
  return new OperatorError(
    'TOKENS_LOST',
    `${what} Run \`tokens recover\` first. If it finds no pair, ${NEW_SET}`,
    NEEDS_OPERATOR,
  );
}

export function stoppingError() {
  return codedError('UPSTREAM_UNREACHABLE', 'The gateway is stopping. Send the request again.');
}

/** @param retryAfter seconds */
export function notRefreshedError(why: string, retryAfter = 10) {
  return new OperatorError(
    'UPSTREAM_UNREACHABLE',
    `The access token cannot be refreshed now (${why}). A running gateway tries again by itself; \`tokens status\` shows the state.`,
    { retryAfter },
  );
}

/** A fault of the gateway must not look like one of the service, to callers or in alerts. */
export function storeError(cause: unknown) {
  return new OperatorError(
    'INTERNAL_SERVER_ERROR',
    `The token store fails (${(cause as Error).message}), so the access token cannot be refreshed. Repair the disk or the ` +
      'database server; a running gateway then goes on by itself.',
    { cause },
  );
}
