import type { NewPair, TokenStore } from './token-store.ts';

/**
 * Whether a process that starts now finds this pair in the store, or a later one. That a save succeeded does not show
 * it: the row of the pair, or that of its set, may have been damaged before or since.
 *
 * @throws what `read` throws
 */
export async function readsBack(store: TokenStore, pair: NewPair): Promise<boolean> {
  const head = await store.read();
  if (!head) return false;
  if (head.set === pair.set && head.generation > pair.generation + 1) return true;
  // It may be kept beside the head: a second pair of its generation, or one of a set that was replaced.
  return head.pair.refreshToken === pair.pair.refreshToken || store.holds(pair);
}
