import type { Logger } from 'pino';
import type { Head } from './head.ts';
import type { PairSaver } from './pair-saver.ts';
import { SealError } from './store/seal.ts';
import { unreadableStoreError, unsavedError, type StoreLoss } from './token-errors.ts';
import { StoreGoneError, type StoredTokens, type TokenStore } from './store/token-store.ts';

export interface StoreWatch {
  /** How often the store was found to have been replaced or taken away. */
  readonly losses: number;
  /**
   * What the store holds. When it does not hold the newest pair any more, that is given back to it first.
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
      const isNew = () => isSaved && before === losses;
      const isOver = newest !== undefined && (newest.lost || newest.movedTo !== null);

      const giveBack = async (loss: StoreLoss, lost: Head, cause?: unknown) => {
        losses += 1;
        onLoss(lost);
        await saver.saveAgain(lost.saved, loss, cause);
      };
      try {
        const stored = await store.read();
        const loss = newest && isNew() ? await lossIn(stored, newest) : undefined;
        if (loss === undefined || !newest || !isNew()) return stored;
        if (isOver) {
          // There is nothing to save, and what lies there may be of use.
          if (stored && stored.set !== newest.set) {
            losses += 1;
            log.fatal({ store: store.description, generation: stored.generation }, REPLACED);
          }
          return stored;
        }
        await giveBack(loss, newest);
      } catch (cause) {
        const loss = lossOf(cause);
        if (!loss) throw unreadableStoreError(cause);
        if (newest && !isOver && isNew()) await giveBack(loss, newest, cause);
        if (saver.pending) throw unsavedError(saver.why);
      }
      return store.read().catch((cause: unknown) => {
        throw unreadableStoreError(cause);
      });
    },
  };

  /** Imports and exchanges by others leave in the store what it held: then nothing is lost. */
  async function lossIn(
    stored: StoredTokens | null,
    { set, generation, saved }: Head,
  ): Promise<StoreLoss | undefined> {
    if (stored === null) return 'older';
    if (stored.set === set && stored.generation >= generation) return undefined;
    if (await store.holds(saved)) return undefined;
    const isCopy = stored.set === set || stored.storeId === saved.home?.storeId;
    return isCopy ? 'older' : 'other';
  }
}

function lossOf(cause: unknown): StoreLoss | undefined {
  if (cause instanceof StoreGoneError) return 'gone';
  return cause instanceof SealError ? 'sealed' : undefined;
}

const REPLACED =
  'An older copy of the token store, or another one, was put in its place while this process ran, and holds another ' +
  'token set. The set that this process had was lost or moved away, so it goes on with what lies there.';
