import { codedError, OperatorError } from '../errors.ts';

/** Nothing changes until the operator has acted. */
const NEEDS_OPERATOR = { needsOperator: true };

const NEW_SET =
  'an administrator make a new token in the personal account of the recruiting service, ' +
  'and run `tokens import <link>` with the link it shows. The gateway then goes on by itself.';

export const MAKE_A_NEW_ONE =
  'Have an administrator make a new token in the personal account, and import its link.';

export function missingError() {
  return new OperatorError(
    'TOKENS_MISSING',
    `No token set was imported yet. Have ${NEW_SET}`,
    NEEDS_OPERATOR,
  );
}

export function movedError(to: string) {
  return new OperatorError(
    'TOKENS_MISSING',
    `The token set was moved to another store (${to}), and can no longer be refreshed from this one. ` +
      'Set TOKEN_STORE to that one, and restart the gateway.',
    NEEDS_OPERATOR,
  );
}

/** Why a refresh token can no longer be used, as far as this process knows. */
export type LossCause = 'unanswered' | 'refused' | 'ended';

export function lostError(cause: LossCause) {
  const text = `${CAUSES[cause]} ${RECOVER_FIRST[cause]} If it finds none, have ${NEW_SET}`;
  return new OperatorError('TOKENS_LOST', text, NEEDS_OPERATOR);
}

/** The message of `tokens recover` if it does not find a pair. */
export function unrecoverableText(cause: LossCause): string {
  return `${CAUSES[cause]} Neither a kept answer nor a rescue file of this machine has a pair that works. Have ${NEW_SET}`;
}

const CAUSES: Record<LossCause, string> = {
  unanswered:
    'The refresh token is spent: an earlier exchange of it never got its answer, so the new pair never arrived.',
  refused:
    'The recruiting service refuses the refresh token, although every exchange from here got its answer: ' +
    'the token store was replaced by an older copy of itself, the token was used elsewhere, or an administrator revoked it, or made ' +
    'another one, which may end the one before.',
  ended:
    'The refresh token has reached its end by the clock of the token store: it was not renewed in its whole life (120 days, unless the service gives another).',
};

const FIND_PAIR = 'Run `tokens recover` first: it looks for a pair that arrived and was not saved.';

const RECOVER_FIRST: Record<LossCause, string> = {
  unanswered: FIND_PAIR,
  refused: FIND_PAIR,
  ended:
    'If that clock is wrong, or was when the tokens were saved, correct it. ' +
    'Run `tokens recover` first: it sends the refresh token once, which may give a pair.',
};

export function stoppingError() {
  return codedError('UPSTREAM_UNREACHABLE', 'The gateway is stopping. Send the request again.');
}

export function unreachableError(cause?: unknown) {
  return new OperatorError(
    'UPSTREAM_UNREACHABLE',
    'The recruiting service cannot be reached to refresh the access token. Nothing was lost; try again shortly.',
    { cause },
  );
}

// A fault of the gateway must not look like one of the service, to callers or in alerts.
const OURS = 'INTERNAL_SERVER_ERROR';

export function unreadableStoreError(cause: unknown) {
  return storeFailure('read', cause);
}

export function unwritableStoreError(cause: unknown) {
  return storeFailure('written', cause);
}

/** Returns what prevents a refresh from beginning; undefined for other errors. */
export function blockedBy(error: unknown): Blocker | undefined {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Blocked ? cause.by : undefined;
}

export type Blocker = 'the store' | 'a rescue file' | 'another process';

class Blocked extends Error {
  override readonly name = 'Blocked';
  readonly by: Blocker;
  constructor(by: Blocker, cause?: unknown) {
    super(cause instanceof Error ? cause.message : by, { cause });
    this.by = by;
  }
}

function storeFailure(what: 'read' | 'written', cause: unknown) {
  return new OperatorError(
    OURS,
    `The access token cannot be refreshed, because the token store cannot be ${what}. Nothing was lost. ` +
      'The operator has to check the disk or the database server that holds the store, and which other programs use it.',
    { ...NEEDS_OPERATOR, cause: new Blocked('the store', cause) },
  );
}

/**
 * How the store lost the newest pair while the process ran: it was replaced by an older copy, or by another store; its
 * database server lost the last commits in a failover; it is gone; or it cannot be decrypted or read, so that the pair
 * may be lost.
 */
export type StoreLoss = 'older' | 'failover' | 'other' | 'gone' | 'sealed' | 'unreadable';

/** Why the store does not have the newest pair. */
export type UnsavedCause = 'unwritable' | StoreLoss;

export function unsavedError(cause: UnsavedCause) {
  return new OperatorError(
    OURS,
    `The access token is not refreshed before the pair of the last refresh is saved: ${UNSAVED[cause]}`,
    NEEDS_OPERATOR,
  );
}

const UNSAVED: Record<UnsavedCause, string> = {
  unwritable:
    'the token store cannot be written. Nothing was lost. The operator has to check the disk or the database server that holds it.',
  older:
    'the token store was replaced by an older copy, which cannot be written. Nothing was lost. ' +
    'The operator has to check the disk that holds the store, and must not end the gateway before that.',
  failover:
    'the database server of the token store has lost the last commits, and cannot be written. Nothing was lost. ' +
    'The operator has to check that server, and must not end the gateway before that.',
  other:
    'the token store was replaced by another one, which cannot be written. Nothing was lost. ' +
    'The operator has to check the file of the store, and must not end the gateway before that.',
  gone:
    'the file of the token store is gone, or is not a token store. Nothing was lost. ' +
    'The operator has to run `tokens recover`, which makes a new one.',
  sealed:
    'the token store is encrypted with a key that the gateway does not have. Nothing was lost. ' +
    'The operator has to restart the gateway with both keys in TOKEN_STORE_KEY, the new one first.',
  unreadable:
    'the token store is damaged, or refuses the gateway. Nothing was lost. ' +
    'The operator has to run `tokens recover`, and follow its output.',
};

export function unreadRescueError() {
  return new OperatorError(
    OURS,
    'A rescue file that may hold the next token pair cannot be read or saved, so nothing is sent. ' +
      'The operator has to run `tokens recover` and follow its output.',
    { ...NEEDS_OPERATOR, cause: new Blocked('a rescue file') },
  );
}

export function busyElsewhereError() {
  return new OperatorError(
    OURS,
    'Another process is renewing the access token, and has not finished. Try again shortly. If this lasts, ' +
      'the operator has to find a process on the same token store that was stopped or hangs, and continue or end it.',
    { cause: new Blocked('another process') },
  );
}

/** @param seconds how long the caller has waited */
export function slowRefreshError(seconds: number) {
  return new OperatorError(
    'UPSTREAM_TIMEOUT',
    `The refresh of the access token takes longer than ${seconds} s. It goes on; try again in a minute.`,
    { retryAfter: 60 },
  );
}

export function uncertainError(cause?: Error) {
  return new OperatorError(
    'UPSTREAM_UNREACHABLE',
    'The recruiting service gave no clear answer to a refresh of the access token. Try again in a few minutes.',
    { retryAfter: 60, cause },
  );
}

class EarlyOrSpent extends Error {
  override readonly name = 'EarlyOrSpent';
}

export function isEarlyOrSpent(error: unknown): boolean {
  return (error as { cause?: unknown }).cause instanceof EarlyOrSpent;
}

export function earlyOrSpentError() {
  return new OperatorError(
    'UPSTREAM_UNREACHABLE',
    'The recruiting service refused to exchange the refresh token, although the access token works. Either it exchanges none before the ' +
      'access token has expired, or the refresh token is spent. Requests are answered meanwhile, and right after the expiry a gateway sends the ' +
      'refresh token once more: only then it is certain. Keep a gateway running until then.',
    { retryAfter: 60, cause: new EarlyOrSpent() },
  );
}

export function rateLimitedError(retryAfter: number) {
  return new OperatorError(
    'UPSTREAM_RATE_LIMITED',
    `The recruiting service limits refreshes of the access token. Try again in ${retryAfter} s.`,
    { retryAfter },
  );
}

export function refusedError(status: number) {
  return new OperatorError(
    'UPSTREAM_UNAUTHORIZED',
    `The token endpoint of the recruiting service answered ${status}. The operator has to check RECRUITING_URL, and any proxy before the service.`,
    NEEDS_OPERATOR,
  );
}
