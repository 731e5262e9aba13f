import type { WalkedPage } from './walk.ts';
import type { WalkSlots } from './walk-slots.ts';

type Pages<R> = AsyncGenerator<WalkedPage<R>, void, undefined>;

/** A walk that waits for its turn, and lets others have it while its consumer does not read on. */
export async function* walkInTurn<R>(
  pages: Pages<R>,
  { slots, owner, signal }: { slots: WalkSlots; owner: object; signal: AbortSignal },
): Pages<R> {
  const slot = await slots.take(owner, signal);
  try {
    for (;;) {
      const { done, value } = await pages.next();
      if (done) return;
      // A consumer that only collects is back before this; one that waits for its own caller is not.
      const resting = setImmediate(() => slot.rest());
      yield value;
      clearImmediate(resting);
      await slot.resume();
    }
  } finally {
    slot.giveBack();
    await pages.return();
  }
}
