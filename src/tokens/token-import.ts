import { isFinal, lossOf } from './held-tokens.ts';
import { TokenLinkError } from './service/token-link.ts';
import { MAKE_A_NEW_ONE } from './token-errors.ts';
import type { ImportOutcome, StoredTokens } from './store/token-store.ts';
import type { TokenPair } from './token-set.ts';
import type { TokenSync, TokenSyncParts } from './token-sync.ts';

interface ImportParts extends Omit<TokenSyncParts, 'rescue' | 'checkAccess'> {
  link: TokenLink | undefined;
}

export interface TokenLink {
  readonly url: string;
  /** @throws TokenLinkError */
  read(): Promise<TokenPair>;
}

/**
 * Imports the set of `TOKEN_LINK` if the store is empty or its set is lost; logs the outcome.
 *
 * @returns a function that tries once, and resolves to whether another try is pointless; never rejects
 */
export function createLinkImport(parts: ImportParts, held: TokenSync): () => Promise<boolean> {
  const { store, clock, log, baseUrl, replica, link } = parts;
  return async () => {
    if (!link) return true;
    try {
      return await tryLink(link);
    } catch (error) {
      if (await isImportedElsewhere().catch(() => false)) return true;
      if (error instanceof TokenLinkError) {
        log.error(error.passing ? `${error.message} It is tried again.` : error.message);
        return !error.passing;
      }
      log.error({ err: error }, 'the token set could not be imported');
      return false;
    }
  };

  async function tryLink(from: TokenLink): Promise<boolean> {
    const stored = await store.read();
    if (isInUse(stored)) {
      // Adopted at once: if a failover loses the pair now, this process may be the only one that has it.
      held.adopt(stored);
      log.warn({ store: store.description }, LINK_IGNORED);
      return true;
    }
    const [linkHost, service] = [new URL(from.url).host, new URL(baseUrl).host];
    const pair = await from.read();
    const outcome = await store.import({ baseUrl, pair, replica, after: stored });
    if (outcome.kind !== 'imported') {
      if (await isImportedElsewhere()) return true;
      if (outcome.kind === 'known') log.error({ linkHost }, knownTokenText(outcome));
      return outcome.kind === 'known';
    }
    held.adopt(outcome.stored);
    const { generation, fingerprint } = outcome.stored;
    const set = { tokenSet: pair.name, generation, fingerprint };
    log.info({ ...set, service, linkHost }, 'token set imported');
    return true;
  }

  /** Several gateways may start at once with one link: the later ones find it spent, and its set in the store. */
  async function isImportedElsewhere(): Promise<boolean> {
    await held.sync();
    const { tokens } = held;
    return tokens !== undefined && !isFinal(tokens) && !lossOf(tokens, clock);
  }
}

/** Whether a set can still be refreshed from this store, as far as is known without calling the service. */
export function isInUse(stored: StoredTokens | null): stored is StoredTokens {
  if (!stored || stored.lost || stored.movedTo !== null) return false;
  return stored.age < stored.pair.refreshTokenExpiresIn * 1000;
}

/** Message for a refresh token that the store has already seen. */
export function knownTokenText(
  outcome: Extract<ImportOutcome, { kind: 'known' }>,
  isLost = false,
): string {
  const { generation, current } = outcome;
  if (current && !isLost) {
    return `The store already holds this token set (generation ${generation}). Nothing was changed.`;
  }
  return current
    ? `This is the token set that was lost (generation ${generation}): its refresh token cannot be used again. Nothing was changed. ${MAKE_A_NEW_ONE}`
    : `This refresh token is spent: the store held it as generation ${generation} before. Nothing was changed. ${MAKE_A_NEW_ONE}`;
}

const LINK_IGNORED =
  'TOKEN_LINK is ignored, because the token store holds a set that is in use. Remove TOKEN_LINK, or run ' +
  '`tokens import <link> --replace` to replace the set.';
