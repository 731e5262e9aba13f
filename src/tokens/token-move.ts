import { NoAnswerError } from '../clock.ts';
import { StoreUnavailableError, type StoredTokens, type TokenStore } from './store/token-store.ts';

export const SAME_STORE =
  'That is the store that the set is in, so nothing was changed. Give another one.';

/**
 * Moves the current set to another store. Repeating an interrupted move finishes it.
 *
 * @param stored what the source holds
 * @param newest the newest generation that is known; default: that of the store
 * @throws Error with a message for the operator
 */
export async function moveSet(
  source: TokenStore,
  target: TokenStore,
  stored: StoredTokens,
  { replica, newest = 0 }: { readonly replica: string; readonly newest?: number },
): Promise<void> {
  const to = target.description;
  const replaced = await target.read();
  // Two addresses can lead to the same store.
  if (replaced?.storeId === stored.storeId) throw new Error(SAME_STORE);
  if (replaced && replaced.baseUrl !== stored.baseUrl) {
    throw new Error(
      `The store ${to} belongs to ${replaced.baseUrl}, and this set to ${stored.baseUrl}. Nothing was moved; choose another store.`,
    );
  }
  const wasMoved = stored.movedTo === to;
  const moved = await source.moveOut({ to, replica });
  if (moved.generation < newest) {
    // The target would send the spent refresh token.
    if (!wasMoved) await source.moveBack(to);
    throw new Error(
      `The store ${source.description} was replaced by an older copy meanwhile, and nothing was moved. ` +
        'Run `tokens recover`, which saves the newest pair of the rescue file into it, and then this command again.',
    );
  }
  await target.moveIn({ ...moved, replica }).catch(async (error: Error) => {
    // The target may have the set all the same: moved back, it would be in use in both stores.
    if (error instanceof StoreUnavailableError || error instanceof NoAnswerError) {
      throw new Error(
        `The token set can no longer be refreshed from ${source.description}, and whether ${to} has it is unknown (${error.message}). ` +
          'Run the command again when that store can be written: this finishes the move.',
      );
    }
    // It may have arrived then, and have been refreshed there since: moving it back would send a spent refresh token.
    if (wasMoved) {
      throw new Error(
        `The token set was moved to ${to} before, and that store has a set in use. Nothing was changed.`,
      );
    }
    await source.moveBack(to);
    throw error;
  });
}
