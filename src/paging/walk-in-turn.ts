import type { WalkedPage } from './walk.ts';
import type { WalkSlot, WalkSlots, WalkTurn } from './walk-slots.ts';

type Pages<R> = AsyncGenerator<WalkedPage<R>, void, undefined>;

/**
 * A walk that waits for its turn before it asks for anything, and lets others have it while its consumer
 * does not read on.
 *
 * @param begin makes the walk; it calls `takeTurn` before each request
 */
export async function* walkInTurn<R>(
  { slots, ...turn }: WalkTurn & { readonly slots: WalkSlots },
  begin: (takeTurn: () => Promise<void>) => Pages<R>,
): Pages<R> {
  const leaving = new AbortController();
  let taking: Promise<WalkSlot> | undefined;
  let slot: WalkSlot | undefined;
  const pages = begin(async () => {
    taking ??= slots.take({ ...turn, signal: AbortSignal.any([turn.signal, leaving.signal]) });
    slot = await taking;
  });
  try {
    for (;;) {
      const { done, value } = await pages.next();
      if (done) return;
      // A consumer that only collects is back before this; one that waits for its own caller is not.
      const resting = setImmediate(() => slot?.rest());
      yield value;
      clearImmediate(resting);
      await slot?.resume();
    }
  } finally {
    leaving.abort(LEFT);
    void taking?.then(
      (taken) => taken.giveBack(),
      () => {},
    );
    await pages.return();
  }
}

/** Made once: a new one, with its stack, costs more than what it ends. */
const LEFT = new DOMException('The walk was left.', 'AbortError');
