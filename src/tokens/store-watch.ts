import type { Logger } from 'pino';
import { isFinal, isSamePair, type HeldTokens } from './held-tokens.ts';
import type { PairSaver } from './pair-saver.ts';
import { SealError } from './store/seal.ts';
import { unreadableStoreError, unsavedError, type StoreLoss } from './token-errors.ts';
import {
  StoreGoneError,
  StoreUnreadableError,
  type StoredTokens,
  type TokenStore,
} from './store/token-store.ts';

export interface StoreWatch {
  /** How often the store was found to be replaced, or gone. */
  readonly losses: number;
  /**
   * Reads the store. If it no longer holds the newest pair, that is saved into it first; null if that fails.
   *
   * @param newest the newest pair that this process knows
   * @param isHeld whether it still is: a newer one may arrive while the store is read, and is saved by its exchange
   * @param onLoss called when the store has lost it
   */
  readOrRestore(
    newest: HeldTokens | undefined,
    isHeld: (pair: HeldTokens) => boolean,
    onLoss: (lost: HeldTokens) => void,
  ): Promise<StoredTokens | null>;
}

interface StoreWatchParts {
  store: TokenStore;
  log: Logger;
}

/**
 * Notices that the store was replaced by an older copy or by another store, that it is gone, or that it is damaged. The
 * newest pair, unless it is lost or moved, is saved into it before anything in it is used.
 */
export function createStoreWatch({ store, log }: StoreWatchParts, saver: PairSaver): StoreWatch {
  let losses = 0;

  return {
    get losses() {
      return losses;
    },
    readOrRestore: async (newest, isHeld, onLoss) => {
      // Taken before the store is read: a pair that is saved meanwhile is not missing in it.
      const isSaved = saver.pending === undefined;
      const before = losses;
      const restore = async (loss: StoreLoss, cause?: unknown) => {
        if (!newest || isFinal(newest) || !isSaved || before !== losses) return;
        if (saver.pending || !isHeld(newest)) return;
        losses += 1;
        onLoss(newest);
        await saver.saveAgain(newest.saved, loss, cause);
      };
      try {
        const { stored, loss } = await compare(newest);
        if (!newest || !loss) return stored;
        if (isFinal(newest)) return logReplaced(stored, newest);
        await restore(loss);
      } catch (cause) {
        const loss = lossOf(cause);
        if (!loss) throw unreadableStoreError(cause);
        await restore(loss, cause);
        if (saver.pending) throw unsavedError(saver.why);
      }
      const { stored, loss } = await compare(newest).catch((cause: unknown) => {
        throw unreadableStoreError(cause);
      });
      // Until the pair is saved, only a set that was imported since is used.
      return !loss || (stored && stored.generation > newest!.generation) ? stored : null;
    },
  };

  /** An import or exchange of another process leaves in the store what it held: then nothing is lost. */
  async function compare(newest: HeldTokens | undefined): Promise<Comparison> {
    for (;;) {
      const stored = await store.read();
      if (!newest || follows(stored, newest)) return { stored, loss: undefined };
      if (!stored) return { stored, loss: store.behind };
      if (!(await store.holds(newest.saved)))
        return { stored, loss: lossIn(stored, newest, store.behind) };
      // Another process may have saved it since that read.
      const again = await store.read();
      if (again && isSamePair(again, stored)) return { stored: again, loss: undefined };
    }
  }

  function logReplaced(stored: StoredTokens | null, { set }: HeldTokens): StoredTokens | null {
    if (!stored || stored.set === set) return stored;
    losses += 1;
    log.fatal({ store: store.description, generation: stored.generation }, REPLACED);
    return stored;
  }
}

interface Comparison {
  readonly stored: StoredTokens | null;
  /** How the store lost the newest pair, if it did. */
  readonly loss: StoreLoss | undefined;
}

function follows(stored: StoredTokens | null, newest: HeldTokens): boolean {
  if (stored?.set !== newest.set) return false;
  return stored.generation > newest.generation || isSamePair(stored, newest);
}

function lossIn(
  { set, storeId }: StoredTokens,
  newest: HeldTokens,
  behind: TokenStore['behind'],
): StoreLoss {
  return set === newest.set || storeId === newest.saved.home?.storeId ? behind : 'other';
}

function lossOf(cause: unknown): StoreLoss | undefined {
  if (cause instanceof StoreGoneError) return 'gone';
  if (cause instanceof StoreUnreadableError) return 'unreadable';
  if (!(cause instanceof SealError)) return undefined;
  return cause.isAltered ? 'unreadable' : 'sealed';
}

const REPLACED =
  'The token store was replaced by an older copy, or by another store, while this process ran, and holds another token ' +
  'set. The set that this process had was lost or moved away, so this process continues with the other one.';
