import type { Head } from './head.ts';
import type { PairSaver } from './pair-saver.ts';
import { unreadableStoreError, unsavedError } from './token-errors.ts';
import { StoreGoneError, type StoredTokens, type TokenStore } from './store/token-store.ts';

export interface StoreWatch {
  /**
   * What the store holds. When it does not hold the newest pair any more, that is given back to it first.
   *
   * @param newest what this process knows
   * @param onLoss told when the store has lost it
   */
  read(newest: Head | undefined, onLoss: (lost: Head) => void): Promise<StoredTokens | null>;
}

/** Notices an older copy that is put in the place of the store, and that its file is taken away. */
export function createStoreWatch(store: TokenStore, saver: PairSaver): StoreWatch {
  let losses = 0;

  return {
    read: async (newest, onLoss) => {
      // Before it is read: what is saved meanwhile is not missing in it.
      const isSaved = saver.pending === undefined;
      const before = losses;
      const mayLose = newest && isSaved && !newest.lost && newest.movedTo === null;

      const giveBack = async (loss: 'older' | 'gone', lost: Head) => {
        losses += 1;
        onLoss(lost);
        await saver.saveAgain(lost.saved, loss);
      };
      try {
        const stored = await store.read();
        const isBehind = mayLose && before === losses && isOlder(stored, newest);
        if (!isBehind) return stored;
        await giveBack('older', newest);
      } catch (cause) {
        if (!(cause instanceof StoreGoneError)) throw unreadableStoreError(cause);
        if (mayLose && before === losses) await giveBack('gone', newest);
        if (saver.pending) throw unsavedError(saver.why);
      }
      return store.read().catch((cause: unknown) => {
        throw unreadableStoreError(cause);
      });
    },
  };
}

/** Of another set it cannot be said: that is an import by somebody. */
function isOlder(stored: StoredTokens | null, { set, generation }: Head): boolean {
  return stored === null || (stored.set === set && stored.generation < generation);
}
