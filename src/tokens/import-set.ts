import type { Clock } from '../clock.ts';
import type { TokenPair } from './token-set.ts';
import type { ImportOutcome, StoredTokens, TokenStore } from './store/token-store.ts';

export interface ImportParts {
  store: TokenStore;
  baseUrl: string;
  replica: string;
  clock: Clock;
}

/**
 * Imports a set that follows what the store holds now. Whoever calls it has made sure that this may be
 * replaced.
 */
export async function importSet(
  { store, baseUrl, replica, clock }: ImportParts,
  pair: TokenPair,
  after: StoredTokens | null,
): Promise<ImportOutcome> {
  return store.import({ baseUrl, pair, replica, at: clock.now(), after });
}

/** Whether a set can still be rotated from this store, as far as can be known without asking the service. */
export function isInUse(stored: StoredTokens | null, now: number): stored is StoredTokens {
  if (!stored || stored.lost || stored.movedTo !== null) return false;
  return now - stored.savedAt < stored.pair.refreshTokenExpiresIn * 1000;
}

/** Of a refresh token that the store has held before. */
export function knownTokenText(
  outcome: Extract<ImportOutcome, { kind: 'known' }>,
  isLost = false,
): string {
  if (outcome.current && isLost) {
    return (
      `This is the token set that was lost (generation ${outcome.generation}): its refresh token is of no use any more. ` +
      `Nothing was changed. ${MAKE_A_NEW_ONE}`
    );
  }
  return outcome.current
    ? `The store holds this very token set already (generation ${outcome.generation}). Nothing was changed.`
    : `This refresh token is spent: the store held it as generation ${outcome.generation} before. ` +
        `Nothing was changed. ${MAKE_A_NEW_ONE}`;
}

const MAKE_A_NEW_ONE =
  'Have an administrator make a new token in the personal account, and import its link.';
