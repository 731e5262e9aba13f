import type { Logger } from 'pino';
import { isSamePair, type Head } from './head.ts';
import type { PairSaver } from './pair-saver.ts';
import { SealError } from './store/seal.ts';
import { unreadableStoreError, unsavedError, type StoreLoss } from './token-errors.ts';
import { StoreGoneError, type StoredTokens, type TokenStore } from './store/token-store.ts';

export interface StoreWatch {
  /** How often the store was found to have been replaced or taken away. */
  readonly losses: number;
  /**
   * What the store holds. When it does not hold the newest pair any more, that is given back to it first; null when
   * that fails.
   *
   * @param newest what this process knows
   * @param onLoss told when the store has lost it
   */
  read(newest: Head | undefined, onLoss: (lost: Head) => void): Promise<StoredTokens | null>;
}

interface StoreWatchParts {
  store: TokenStore;
  log: Logger;
}

/**
 * Notices an older copy, or another store, that is put in the place of the store, and that its file is taken
 * away. A pair that is worth something, and that the store does not hold any more, is saved into what lies there
 * before anything of that is used.
 */
export function createStoreWatch({ store, log }: StoreWatchParts, saver: PairSaver): StoreWatch {
  let losses = 0;

  return {
    get losses() {
      return losses;
    },
    read: async (newest, onLoss) => {
      // Before it is read: what is saved meanwhile is not missing in it.
      const isSaved = saver.pending === undefined;
      const before = losses;
      const giveBack = async (loss: StoreLoss, cause?: unknown) => {
        if (!newest || isWorthless(newest) || !isSaved || before !== losses) return;
        losses += 1;
        onLoss(newest);
        await saver.saveAgain(newest.saved, loss, cause);
      };
      try {
        const { stored, loss } = await look(newest);
        if (!newest || !loss) return stored;
        if (isWorthless(newest)) return sayReplaced(stored, newest);
        await giveBack(loss);
      } catch (cause) {
        const loss = lossOf(cause);
        if (!loss) throw unreadableStoreError(cause);
        await giveBack(loss, cause);
        if (saver.pending) throw unsavedError(saver.why);
      }
      const { stored, loss } = await look(newest).catch((cause: unknown) => {
        throw unreadableStoreError(cause);
      });
      // Where it is not saved yet, only what somebody imported since is used.
      return !loss || (stored && stored.generation > newest!.generation) ? stored : null;
    },
  };

  /** Imports and exchanges by others leave in the store what it held: then nothing is lost. */
  async function look(newest: Head | undefined): Promise<Look> {
    for (;;) {
      const stored = await store.read();
      if (!newest || follows(stored, newest)) return { stored, loss: undefined };
      if (!stored) return { stored, loss: 'older' };
      if (!(await store.holds(newest.saved))) return { stored, loss: lossIn(stored, newest) };
      // It may have been saved there since that was read.
      const again = await store.read();
      if (again && isSamePair(again, stored)) return { stored: again, loss: undefined };
    }
  }

  function sayReplaced(stored: StoredTokens | null, { set }: Head): StoredTokens | null {
    if (!stored || stored.set === set) return stored;
    losses += 1;
    log.fatal({ store: store.description, generation: stored.generation }, REPLACED);
    return stored;
  }
}

interface Look {
  readonly stored: StoredTokens | null;
  /** How the store lost the newest pair, if it did. */
  readonly loss: StoreLoss | undefined;
}

/** Nothing has to be saved of it, and what lies in the place of its store may be of use. */
function isWorthless({ lost, movedTo }: Head): boolean {
  return lost || movedTo !== null;
}

function follows(stored: StoredTokens | null, { set, generation }: Head): boolean {
  return stored?.set === set && stored.generation >= generation;
}

function lossIn({ set, storeId }: StoredTokens, newest: Head): StoreLoss {
  return set === newest.set || storeId === newest.saved.home?.storeId ? 'older' : 'other';
}

function lossOf(cause: unknown): StoreLoss | undefined {
  if (cause instanceof StoreGoneError) return 'gone';
  return cause instanceof SealError ? 'sealed' : undefined;
}

const REPLACED =
  'An older copy of the token store, or another one, was put in its place while this process ran, and holds another ' +
  'token set. The set that this process had was lost or moved away, so it goes on with what lies there.';
