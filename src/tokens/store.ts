import { OperatorMistake } from '../errors.ts';
import { parseJson } from './pair.ts';
import type { Sealer } from './seal.ts';
import { VERSION, type Rule, type State } from './state.ts';

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

/** @throws OperatorMistake if what a store has belongs to another service */
export function checkService(state: State | null, serviceUrl: string): void {
  if (!state || state.service === serviceUrl) return;
  throw new OperatorMistake(
    `it belongs to ${state.service}, and this process to ${serviceUrl}. It was not changed. Correct the address of the service, ` +
      'or that of the store.',
  );
}

export function sealState(state: State, sealer: Sealer): string {
  return sealer.seal(JSON.stringify(state));
}

/** @throws Error for the operator; the store is left as it is */
export function openState(sealed: string, sealer: Sealer): State {
  const state = parseJson(sealer.open(sealed)) as State | null | undefined;
  const version: unknown = state?.version;
  if (state && version === VERSION) return state;
  throw new Error(
    typeof version === 'number'
      ? `the token store was written by another version of this program (document ${version}, this one reads ${VERSION}): run that version`
      : 'the token store is damaged',
  );
}
