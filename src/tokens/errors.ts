import { codedError, OperatorError, OperatorMistake } from '../errors.ts';
import { adviceOn, afterClaim, underWay, type Wording } from './health.ts';
import { KeyMissing } from './seal.ts';
import type { Claim, State } from './state.ts';
import { StoreUnavailable, type TokenStore } from './store.ts';

/** Of tokens that are missing (also: moved) or lost. Nothing changes until the operator has acted. */
export function fatalError(trouble: 'missing' | 'lost', state: State | null, wording: Wording) {
  const code = trouble === 'lost' ? 'TOKENS_LOST' : 'TOKENS_MISSING';
  const { what, first, step } = adviceOn(trouble, state, Infinity, wording);
  const message = [what, first, step].filter((part) => part !== undefined).join(' ');
  return new OperatorError(code, message, { needsOperator: true });
}

/** @param again what is in use again; undefined: the import replaced nothing that works */
export function importRefusedError(again: State | undefined, { steps }: Wording) {
  const withdrawn = again
    ? `The import was withdrawn: what it had replaced is in use again, as generation ${again.generation}. `
    : '';
  return new OperatorError(
    'TOKENS_LOST',
    `The service refuses the imported refresh token: it is spent or revoked. ${withdrawn}${steps.lost.step}`,
    { needsOperator: true },
  );
}

export function stoppingError() {
  return codedError('UPSTREAM_UNREACHABLE', 'This process is stopping. Send the request again.');
}

/** @param retryAfter seconds */
export function notRefreshedError(why: string, retryAfter = 10) {
  return new OperatorError(
    'UPSTREAM_UNREACHABLE',
    `The access token could not be refreshed (${why}). A running process tries again by itself.`,
    { retryAfter },
  );
}

/** Of a process that may be refreshing, or has died. */
export function notAnsweredError(claim: Claim, wording: Wording) {
  return new OperatorError(
    'UPSTREAM_UNREACHABLE',
    `The access token could not be refreshed. ${underWay(claim)} ${afterClaim(claim, wording)}`,
  );
}

/** @param why with what to check */
export function mistakeError(why: string, { ofImport = false } = {}) {
  const what = ofImport
    ? 'The imported pair is stored, but its refresh token could not be exchanged'
    : 'The access token could not be refreshed';
  return new OperatorError(
    'UPSTREAM_UNAUTHORIZED',
    `${what}: ${why}. A running process tries again every few minutes.`,
    { needsOperator: true },
  );
}

/** A fault of the gateway must not look like one of the service, to callers or in alerts. */
export function storeError(cause: unknown) {
  return new OperatorError(
    'INTERNAL_SERVER_ERROR',
    `The token store fails (${(cause as Error).message}), so the access token cannot be refreshed. Repair the disk or the ` +
      'database server; a running process then goes on by itself.',
    { cause },
  );
}

export function foreignStore(
  { description }: Pick<TokenStore, 'description'>,
  { service }: State,
  serviceUrl: string,
  { settings }: Wording,
): OperatorMistake {
  return new OperatorMistake(
    `The token store (${description}) belongs to ${service}, but ${settings.service} is ${serviceUrl}. Correct ${settings.service}, ` +
      `or name the store of this service with ${settings.store}. The store was not changed.`,
  );
}

/**
 * Tells the operator why a token store cannot be used, and what helps.
 *
 * @returns an OperatorMistake if a restart changes nothing
 */
export function storeProblem(
  error: unknown,
  { description }: Pick<TokenStore, 'description'>,
  wording: Wording,
): Error {
  if (error instanceof OperatorMistake) return error;
  const { message } = error as Error;
  const text = `The token store cannot be used (${description}): ${message}. ${stepAfter(error as Error, description, wording)}`;
  return error instanceof KeyMissing
    ? new OperatorMistake(text, { cause: error })
    : new Error(text, { cause: error });
}

function stepAfter(error: Error, description: string, wording: Wording): string {
  const { settings, users } = wording;
  const isFile = description.startsWith('sqlite:');
  if (error instanceof KeyMissing) {
    return (
      `It was left as it is. Set ${settings.key} as it is set for ${users} on this store. While the key is being ` +
      'changed, that is both keys, the new one first.'
    );
  }
  if (/damaged|malformed|not a database/.test(error.message)) {
    const remove = isFile ? 'move the file away' : 'run DELETE FROM recruiting_tokens';
    return (
      `It was left as it is. Check that ${settings.store} names the token store. If it does, ${remove}: a process that still runs ` +
      'saves its pair again within half a minute. If none runs, start one, which looks for an emergency file. If there is none, ' +
      'import a new pair.'
    );
  }
  if (!(error instanceof StoreUnavailable)) return `It was left as it is. Check ${settings.store}.`;
  return (
    (isFile
      ? `Check ${settings.store} and the disk, and that the user of ${users} runs this and may read and write there. `
      : `Start the database server, or correct ${settings.store}. `) +
    'Running processes serve with the tokens that they have; callers get errors once the access token expires.'
  );
}
