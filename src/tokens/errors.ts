import { OperatorError, OperatorMistake } from '../errors.ts';
import { StoreUnavailable, type TokenStore } from './store.ts';

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

/**
 * Says why a token store cannot be used, and what helps. Its code is no code of the service, because callers and alerts
 * must not take a fault of the gateway for one of the service.
 *
 * @param cause StoreUnavailable if the store may work again by itself, OperatorMistake if a restart changes nothing
 */
export function storeError(
  cause: unknown,
  { description }: Pick<TokenStore, 'description'>,
): OperatorError {
  if (cause instanceof OperatorError) return cause;
  const why = `The token store cannot be used (${description}): ${(cause as Error).message}`;
  const text = cause instanceof OperatorMistake ? why : `${why}. ${stepAfter(cause)}`;
  return new OperatorError('INTERNAL_SERVER_ERROR', text, { cause });
}

function stepAfter(error: unknown): string {
  return error instanceof StoreUnavailable
    ? 'Check its address, its permissions, and the disk or the database server. Running processes serve with the tokens that they have.'
    : 'It was left as it is. Check its address. If it is damaged, move the file away (PostgreSQL: DELETE FROM recruiting_tokens): a ' +
        'process that runs saves its pair again, and a start saves one that is in an emergency file.';
}
