import type { Position } from '../cursor.ts';
import { type SearchedList, locate } from '../position/locate.ts';
import type { Identified } from '../page.ts';
import { walkBehind, firstBehind, mayHaveSlid } from '../position/resume.ts';
import { positionsOf, walk } from '../walk.ts';
import type { DrainedPage } from '../drain/drain.ts';
import type { Tail } from '../drain/list-walk.ts';
import { codedError } from '../../errors.ts';
import { placeLost } from '../failures.ts';

/** A stretch of a list as its pages come, and at its end what stands around it. */
export type Slice<R> = AsyncGenerator<SlicePart<R>, SliceEnd, undefined>;

export interface SlicePart<R> {
  /** Records, each with the position that its cursor is made from. */
  readonly edges: readonly Edge<R>[];
  /** What came with them and belongs to no record. */
  readonly beside: readonly unknown[];
}

export interface Edge<R> {
  readonly record: R;
  readonly position: Position;
}

export interface SliceEnd {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

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

/** What `before` comes to in the list as it is now. */
export interface Border<R> {
  /** The record that ends the stretch; null: the end of the list does. */
  readonly record: string | null;
  readonly hasNextPage: boolean;
  /** What stands right in front of it in its page. */
  readonly edges?: readonly { readonly record: R; readonly position: Position }[];
  /** Whether that begins at the start of the list. */
  readonly isStart?: boolean;
}

export async function borderAt<R extends Identified>(
  list: SearchedList<R>,
  before: Position,
  signal: AbortSignal,
): Promise<Border<R>> {
  const found = await locate(list, before, signal);
  // Its page up to the end then: a record may come twice, but none is skipped.
  if (!('page' in found)) {
    const behind = await firstBehind(list.fetchPage, before.end, signal);
    if (behind === undefined) throw placeLost(found.refusal?.error);
    if (behind === null || !mayHaveSlid(before, found, behind)) {
      return { record: behind, hasNextPage: behind !== null };
    }
    // Where its page ends further to the front than it did, only the end of the list is late enough.
    if (!found.isNear.end) throw placeLost();
    return { record: null, hasNextPage: false };
  }
  const { page, after, place } = found;
  const { items, endCursor: end } = page;
  const edges = items.slice(0, place).map((record, index) => ({
    record,
    position: { after, end, size: items.length, place: index, identity: record.identity },
  }));
  return { record: before.identity, hasNextPage: true, edges, isStart: after === null };
}

export function noIdentities() {
  return codedError(
    'BAD_USER_INPUT',
    'The records of this list have no id, so that the place of `before` cannot be found again in other pages. Page forward, with `first` and `after`.',
  );
}
