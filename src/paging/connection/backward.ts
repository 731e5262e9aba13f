import type { Edge, Slice, SliceEnd, SlicePart } from './connection-slice.ts';
import type { Position } from '../place/cursor.ts';
import type { DrainedPage } from '../drain.ts';
import type { Tail } from '../list-walk.ts';
import type { SearchedList } from '../place/locate.ts';
import type { Identified } from '../page.ts';
import { positionsOf } from '../walk.ts';
import { borderAt, noIdentities, type Border } from './border.ts';

export interface BackwardOptions {
  readonly last: number;
  /** In front of this record; null: at the end of the list. */
  readonly before: Position | null;
  /** A walk that begins behind this one; null: at the start of the list. */
  readonly after: Position | null;
  readonly signal: AbortSignal;
}

export interface BackwardSource<R> {
  readonly list: SearchedList<R>;
  /** Walks towards the end of the list, from as late as it can. */
  readonly walk: (tail: Tail | undefined) => AsyncGenerator<DrainedPage<R>, void, undefined>;
}

/**
 * Reads the `last` records in front of one. The upstream gives pages forward only: near the start of a page
 * one request is enough, otherwise the list is walked, its end alone where the page index knows it.
 *
 * Both flags are exact, as Relay's cursor connections specification (section 4.4) has them for `last`.
 */
export async function* readBackward<R extends Identified>(
  source: BackwardSource<R>,
  { last, before, after, signal }: BackwardOptions,
): Slice<R> {
  const border: Border<R> = before
    ? await borderAt(source.list, before, signal)
    : { record: null, hasNextPage: false };
  if (border.edges && !after && (border.isStart || border.edges.length > last)) {
    return yield* slice(border.edges, last, border.hasNextPage, []);
  }
  if (before && before.identity === null) throw noIdentities();
  const tails = after ? [undefined] : [{ records: last + 1, before: border.record }, undefined];
  for (const tail of tails) {
    const run = await readUpTo(source.walk(tail), border.record, last + 1).catch(
      (error: unknown) => {
        if (tail === undefined || signal.aborted) throw error;
        // The cursor that it began with may be refused by now.
        return undefined;
      },
    );
    if (!run) continue;
    const isEnough = run.isStart || run.edges.length > last || tail === undefined;
    const isRight = run.isMet || border.record === null || tail === undefined;
    if (isEnough && isRight) return yield* slice(run.edges, last, border.hasNextPage, run.beside);
  }
  throw new TypeError('A whole walk is always enough.');
}

async function readUpTo<R extends Identified>(
  pages: AsyncGenerator<DrainedPage<R>, void, undefined>,
  border: string | null,
  wanted: number,
) {
  let edges: Edge<R>[] = [];
  const beside: unknown[] = [];
  let isStart: boolean | undefined;
  for await (const page of pages) {
    const [start] = page.records;
    if (start) isStart ??= page.page.after === null;
    beside.push(...page.beside);
    const met = page.records.findIndex(
      ({ record }) => border !== null && record.identity === border,
    );
    edges.push(...positionsOf(page.page, page.records.slice(0, met < 0 ? undefined : met)));
    edges = edges.slice(-wanted);
    if (met >= 0) return { edges, beside, isStart, isMet: true };
  }
  return { edges, beside, isStart: isStart ?? false, isMet: false };
}

function* slice<R>(
  edges: readonly Edge<R>[],
  last: number,
  hasNextPage: boolean,
  beside: readonly unknown[],
): Generator<SlicePart<R>, SliceEnd> {
  const wanted = last === 0 ? [] : edges.slice(-last);
  yield { edges: wanted, beside };
  return { hasNextPage, hasPreviousPage: edges.length > last };
}
