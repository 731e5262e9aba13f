import { mayBeRefusal } from '../failures.ts';
import type { Identified, Page } from '../page.ts';
import type { Progress } from '../progress.ts';
import { identitiesOf } from '../page-identities.ts';
import type { PageRead, Prefetch } from './prefetch-pages.ts';

/** The pages that a walk gave, from the last one on that was read when its turn came. */
export interface Trail<R> {
  /** A page was given that goes on where the one before ends. */
  add(after: string | null): void;
  /** A page was given that was read just now, from the cursor of the one before. */
  begin(after: string | null): void;
  /**
   * Reads the end of the trail once more, to go on from there. It may have been read long ago; where its cursor
   * names a position and records before that were removed since, records that nobody gave have moved in front
   * of it. So when the page repeats nothing, an earlier one is read instead.
   *
   * At the latest the first of the trail, and that is gone on from whatever it holds: what is removed between
   * two pages read in turn is lost once, as in any walk page by page, and not once more at each page that was
   * read ahead.
   *
   * @throws why it could not be read
   */
  readEndAgain(): Promise<PageRead<R>>;
}

/** Pages to go further back at a time, at most: a walk that goes too far back brings nothing new for too long. */
const MAX_STEP = 100;

export function createTrail<R extends Identified>(
  { mustReadFrom }: Pick<Prefetch<R>, 'mustReadFrom'>,
  progress: Progress<R>,
  signal: AbortSignal,
): Trail<R> {
  const cursors: (string | null)[] = [];

  return {
    add: (after) => cursors.push(after),
    begin: (after) => cursors.splice(0, cursors.length, after),
    readEndAgain: async () => {
      for (let back = 1; back < cursors.length; back += Math.min(back, MAX_STEP)) {
        const after = cursors.at(-back) ?? null;
        const read = await mustReadFrom(after).catch((error: unknown) => {
          if (mayBeRefusal(error, after, signal)) return undefined;
          throw error;
        });
        if (read && repeats(read.page)) return read;
      }
      return mustReadFrom(cursors[0] ?? null);
    },
  };

  /** Two records, where there are two: one alone may have been moved there. */
  function repeats(page: Page<R>): boolean {
    const repeated = progress.repeatedBy(page);
    return (
      identitiesOf(page).isJoinable && repeated > 0 && repeated >= Math.min(2, page.items.length)
    );
  }
}
