import { OperatorError, OperatorMistake } from '../errors.ts';
import { lineOn, type Steps } from './health.ts';
import { KeyMissing } from './seal.ts';
import type { State } from './state.ts';
import { StoreUnavailable, type TokenStore } from './store.ts';

/** Of tokens that are missing (also: moved) or lost. Nothing changes until the operator has acted. */
export function fatalError(trouble: 'missing' | 'lost', state: State | null, steps?: Steps) {
  const code = trouble === 'lost' ? 'TOKENS_LOST' : 'TOKENS_MISSING';
  return new OperatorError(code, lineOn(trouble, state, steps), { needsOperator: true });
}

/** @param retryAfter seconds */
export function notRefreshedError(why: string, retryAfter = 10) {
  return new OperatorError(
    'UPSTREAM_UNREACHABLE',
    `The access token could not be refreshed (${why}). A running process tries again by itself.`,
    { retryAfter },
  );
}

/** @param why with what to check */
export function mistakeError(why: string) {
  return new OperatorError(
    'UPSTREAM_UNAUTHORIZED',
    `The access token could not be refreshed: ${why}. The pair is kept, and a running process tries again by itself.`,
    { needsOperator: true },
  );
}

/** A fault of the gateway must not look like one of the service, to callers or in alerts. */
export function storeError(cause: unknown) {
  return new OperatorError(
    'INTERNAL_SERVER_ERROR',
    `The token store fails (${(cause as Error).message}). Repair the disk or the database server; a running process then goes on by ` +
      'itself.',
    { cause },
  );
}

export function foreignStore(
  { description }: Pick<TokenStore, 'description'>,
  { service }: State,
  serviceUrl: string,
): OperatorMistake {
  return new OperatorMistake(
    `The token store (${description}) belongs to ${service}, and this process to ${serviceUrl}. Correct the address of the ` +
      'service, or that of the store. The store was not changed.',
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
): Error {
  if (error instanceof OperatorMistake) return error;
  const text = `The token store cannot be used (${description}): ${(error as Error).message}. ${stepAfter(error)}`;
  return error instanceof KeyMissing
    ? new OperatorMistake(text, { cause: error })
    : new Error(text, { cause: error });
}

function stepAfter(error: unknown): string {
  if (error instanceof KeyMissing) {
    return (
      'It was left as it is. Set TOKEN_STORE_KEY (in a program: `keys`) as the other processes have it. While the key is being ' +
      'changed, that is both keys, the new one first.'
    );
  }
  return error instanceof StoreUnavailable
    ? 'Check its address, its permissions, and the disk or the database server. Running processes serve with the tokens that they have.'
    : 'It was left as it is. Check its address. If it is damaged, move the file away (PostgreSQL: DELETE FROM recruiting_tokens): a ' +
        'process that runs saves its pair again, and a start saves one that is in an emergency file.';
}
