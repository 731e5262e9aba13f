import { borderAt, noIdentities } from './border.ts';
import type { Slice } from './connection-slice.ts';
import type { Position } from '../place/cursor.ts';
import type { SearchedList } from '../place/locate.ts';
import type { Identified } from '../page.ts';
import { walkBehind } from '../place/resume.ts';
import { positionsOf, walk } from '../walk.ts';

export interface ForwardOptions {
  /** Undefined: one page, as large as the node gives. */
  readonly first: number | undefined;
  /** Behind this record; null: from the start. */
  readonly after: Position | null;
  /** As far as this record; null: as far as there are any. */
  readonly before: Position | null;
  readonly signal: AbortSignal;
}

/**
 * Reads forward: exactly `first` records, over as many pages as that takes.
 *
 * `hasPreviousPage` is true whenever a cursor was given, without asking: the record of the cursor itself
 * came before (Relay's cursor connections specification leaves it to the server).
 */
export async function* readForward<R extends Identified>(
  list: SearchedList<R>,
  { first, after, before, signal }: ForwardOptions,
): Slice<R> {
  if (before && before.identity === null) throw noIdentities();
  const border = before && (await borderAt(list, before, signal));
  let left = first ?? Number.POSITIVE_INFINITY;
  let hasNextPage = false;
  // `first: 0` still has to tell whether there is something: it looks at one record and gives none. And
  // whether one more comes before the border, only that record can tell.
  const limit = first === undefined ? undefined : border ? first + 1 : Math.max(first, 1);
  const bound = limit === undefined ? { maxPages: 1 } : { limit };
  const begin = (from: string | null) => walk(list.fetchPage, { after: from, signal, ...bound });
  const pages = walkBehind(list, after, begin, signal);
  for await (const page of pages) {
    const given = positionsOf(page);
    const met = border
      ? given.findIndex(
          ({ record }) => record.identity !== null && record.identity === border.record,
        )
      : -1;
    const found = given.slice(0, met < 0 ? undefined : met);
    const edges = found.slice(0, left);
    left -= edges.length;
    hasNextPage = found.length > edges.length || (met < 0 && page.hasNextPage);
    yield { edges, beside: page.beside ?? [] };
    if (met >= 0) break;
  }
  return {
    // Without `first` nothing limits the stretch but its page and the border, which has something behind it.
    hasNextPage: hasNextPage || (first === undefined && border?.hasNextPage === true),
    hasPreviousPage: after !== null,
  };
}
