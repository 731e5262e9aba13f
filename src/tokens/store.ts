import { OperatorError, OperatorMistake } from '../errors.ts';
import type { Rule, State } from './state.ts';

/**
 * Where the state is kept: SQLite for one machine, PostgreSQL for many. A store knows no rules, and holds nothing open
 * between two calls.
 */
export interface TokenStore {
  /** Names the store to people, without credentials. */
  readonly description: string;
  /**
   * Reads the state, null if there is none: a missing row or table is an empty store.
   *
   * @throws StoreUnavailable if it may work again by itself; another Error if the operator has to act
   */
  read(): Promise<Reading>;
  /**
   * Runs a rule in one durable transaction; all processes take turns. If the outcome of the commit is unknown, the rule
   * is run once more.
   */
  update<T>(rule: Rule<T>): Promise<T>;
}

export interface Reading {
  readonly state: State | null;
  /** The store's clock, ms. */
  readonly now: number;
}

/** The store cannot be reached now. It may work again by itself. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
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
  const step =
    cause instanceof StoreUnavailable
      ? 'Check its address, its permissions, and the disk or the database server. Running processes serve with the tokens that they have.'
      : 'It was left as it is. Check its address. If it is damaged, move the file away (PostgreSQL: DELETE FROM recruiting_tokens): a ' +
        'process that runs saves its pair again, and a start saves one that is in an emergency file.';
  const text = cause instanceof OperatorMistake ? why : `${why}. ${step}`;
  return new OperatorError('INTERNAL_SERVER_ERROR', text, { cause });
}

/** @throws OperatorMistake if what a store has belongs to another service */
export function checkService(state: State | null, serviceUrl: string): void {
  if (!state || state.service === serviceUrl) return;
  throw new OperatorMistake(
    `it belongs to ${state.service}, and this process to ${serviceUrl}. It was not changed. Correct the address of the service, ` +
      'or that of the store.',
  );
}
