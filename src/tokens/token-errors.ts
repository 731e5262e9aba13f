import { codedError } from '../errors.ts';

const NEW_SET =
  'Have an administrator make a new token in the personal account of the recruiting service, ' +
  'and run `tokens import <link>` with the link it shows. The gateway then goes on by itself.';

export function missingError() {
  return codedError('TOKENS_MISSING', `No token set was imported yet. ${NEW_SET}`);
}

export function movedError(to: string) {
  return codedError(
    'TOKENS_MISSING',
    `The token set was moved to another store (${to}), and is not renewed from this one any more. ` +
      'Set TOKEN_STORE to that one, and restart the gateway.',
  );
}

/** Why a refresh token is of no use any more, as far as can be told from here. */
export type LossCause = 'unanswered' | 'refused' | 'ended';

export function lostError(cause: LossCause) {
  return codedError('TOKENS_LOST', `${CAUSES[cause]} ${NEW_SET}`);
}

const CAUSES: Record<LossCause, string> = {
  unanswered:
    'The refresh token is spent: an earlier exchange of it never got its answer, so the pair that it gave never arrived.',
  refused:
    'The recruiting service refuses the refresh token, and no exchange from here is open that could have spent it: ' +
    'an older copy of the token store was put in its place, the token was used somewhere else, or an administrator revoked it.',
  ended:
    "The refresh token has reached its end by this machine's clock (check that clock first): it was not renewed in its whole life (120 days, if the service did not say otherwise).",
};

export function stoppingError() {
  return codedError('UPSTREAM_UNREACHABLE', 'The gateway is stopping. Send the request again.');
}

export function unreachableError(cause?: unknown) {
  return codedError(
    'UPSTREAM_UNREACHABLE',
    'The recruiting service cannot be reached to renew the access token. Nothing was lost; try again shortly.',
    { cause },
  );
}

// What is wrong on this side is not put down to the service: neither callers nor alerts are sent there.
const OURS = 'INTERNAL_SERVER_ERROR';

export function unreadableStoreError(cause: unknown) {
  return storeFailure('read', cause);
}

export function unwritableStoreError(cause: unknown) {
  return storeFailure('written', cause);
}

/** What keeps a rotation from beginning, where an error says that. */
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
  return codedError(
    OURS,
    `The access token cannot be renewed now, because the token store cannot be ${what}. Nothing was lost. ` +
      'The operator has to look at the disk that holds the store, and at what else uses its file.',
    { cause: new Blocked('the store', cause) },
  );
}

/**
 * How the store lost the newest pair while the process ran: an older copy of it lies there, or another store, or
 * none, or one that cannot be unsealed, so that it may have been lost.
 */
export type StoreLoss = 'older' | 'other' | 'gone' | 'sealed';

/** Why the store does not have the newest pair. */
export type UnsavedCause = 'unwritable' | StoreLoss;

export function unsavedError(cause: UnsavedCause) {
  return codedError(
    OURS,
    `The access token is not renewed before the pair of the last renewal is saved: ${UNSAVED[cause]}`,
  );
}

const UNSAVED: Record<UnsavedCause, string> = {
  unwritable:
    'the token store cannot be written. Nothing was lost. The operator has to look at the disk that holds the store.',
  older:
    'an older copy of the token store was put in its place, and cannot be written. Nothing was lost. ' +
    'The operator has to look at the disk that holds the store, and must not end the gateway before.',
  other:
    'another token store was put in its place, and cannot be written. Nothing was lost. ' +
    'The operator has to look at the file of the store, and must not end the gateway before.',
  gone:
    'the file of the token store is gone, or is no token store. Nothing was lost. ' +
    'The operator has to run `tokens recover`, which makes a new one.',
  sealed:
    'the token store is encrypted with a key that the gateway does not have. Nothing was lost. ' +
    'The operator has to restart the gateway with both keys in TOKEN_STORE_KEY, the new one first.',
};

export function unreadRescueError() {
  return codedError(
    OURS,
    'A rescue file may hold the pair that the last renewal of the access token gave, and cannot be read or saved. Nothing is ' +
      'sent before that is settled. The operator has to run `tokens recover` and read what it says.',
    { cause: new Blocked('a rescue file') },
  );
}

export function busyElsewhereError() {
  return codedError(
    OURS,
    'Another process is renewing the access token, and has not finished. Try again shortly. If that lasts, ' +
      'the operator has to look for a process on the same token store that was stopped or hangs, and wake or end it.',
    { cause: new Blocked('another process') },
  );
}

export function uncertainError() {
  return codedError(
    'UPSTREAM_UNREACHABLE',
    'The recruiting service gave no clear answer to the renewal of the access token. Try again in a few minutes.',
  );
}

export function rateLimitedError(retryAfter: number) {
  return codedError(
    'UPSTREAM_RATE_LIMITED',
    `The recruiting service asks to wait ${retryAfter} s before the access token is renewed.`,
    { extensions: { retryAfter } },
  );
}

export function refusedError(status: number) {
  return codedError(
    'UPSTREAM_UNAUTHORIZED',
    `The token endpoint of the recruiting service answered ${status}. Check RECRUITING_URL and what stands between.`,
  );
}
