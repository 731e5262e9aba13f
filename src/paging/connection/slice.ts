import { codedError } from '../../errors.ts';
import type { PageBounds, Position } from '../cursor.ts';
import type { DrainedPage } from '../drain/drain.ts';
import type { Tail } from '../drain/list-walk.ts';
import { cursorLost } from '../failures.ts';
import type { FetchPage, Identified } from '../page.ts';
import { locate, type IndexedList } from '../find/locate.ts';
import { firstBehind, mayHaveSlid, walkBehind } from '../find/resume.ts';
import { walk } from '../walk.ts';

/** The edges of a connection, page by page, and at the end its flags. */
export type Slice<R> = AsyncGenerator<SlicePart<R>, SliceEnd, undefined>;

export interface SlicePart<R> {
  readonly edges: readonly Edge<R>[];
  readonly unplacedErrors: readonly unknown[];
}

/** A record, and the page that its cursor is made from: see `positionOf`. */
export interface Edge<R> {
  readonly record: R;
  readonly page: PageBounds;
}

export interface SliceEnd {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

export interface ForwardOptions {
  /** Undefined: one page, as large as the service gives. */
  readonly first: number | undefined;
  /** Behind this record; null: from the start of the list. */
  readonly after: Position | null;
  /** In front of this record; null: to the end of the list. */
  readonly before: Position | null;
  readonly signal: AbortSignal;
}

export interface ForwardSource<R> {
  /** In which the records of cursors are located. */
  readonly list: IndexedList<R>;
  /** Fetches the pages of the edges. */
  readonly fetchPage: FetchPage<R>;
}

/**
 * Reads the `first` records behind a position, over as many pages as that takes.
 *
 * `hasPreviousPage` is true whenever a cursor was given, without a request: the record of the cursor itself comes
 * before (Relay's cursor connections specification leaves it to the server).
 */
export async function* readForward<R extends Identified>(
  { list, fetchPage }: ForwardSource<R>,
  { first, after, before, signal }: ForwardOptions,
): Slice<R> {
  if (before && before.identity === null) throw noIdentities();
  const border = before && (await borderAt(list, before, signal));
  let left = first ?? Number.POSITIVE_INFINITY;
  let hasNextPage = false;
  // `first: 0` reads one record for its `hasNextPage`, and gives none. In front of a border, one record more than
  // wanted tells whether another one follows.
  const limit = first === undefined ? undefined : border ? first + 1 : Math.max(first, 1);
  const bound = limit === undefined ? { maxPages: 1 } : { limit };
  const begin = (from: string | null) => walk(fetchPage, { after: from, signal, ...bound });
  const pages = walkBehind(list, after, begin, signal);
  for await (const page of pages) {
    const given = page.records.list;
    const met = border
      ? given.findIndex(({ identity }) => identity !== null && identity === border.record)
      : -1;
    const found = met < 0 ? given : given.slice(0, met);
    const edges = edgesOf(page, found.length > left ? found.slice(0, left) : found);
    left -= edges.length;
    hasNextPage = found.length > edges.length || (met < 0 && page.hasNextPage);
    yield { edges, unplacedErrors: page.unplacedErrors ?? [] };
    if (met >= 0) break;
  }
  return {
    // Without `first`, the edges end at their page or at the border, and the border's record is a next one.
    hasNextPage: hasNextPage || (first === undefined && border?.hasNextPage === true),
    hasPreviousPage: after !== null,
  };
}

export interface BackwardOptions {
  readonly last: number;
  /** In front of this record; null: at the end of the list. */
  readonly before: Position | null;
  /** Behind this record; null: from the start of the list. */
  readonly after: Position | null;
  readonly signal: AbortSignal;
}

export interface BackwardSource<R> {
  readonly list: IndexedList<R>;
  /** Walks to the end of the list, from as late as the tail allows. */
  readonly walk: (tail: Tail | undefined) => AsyncGenerator<DrainedPage<R>, void, undefined>;
}

/**
 * Reads the `last` records in front of a position. The upstream gives pages forward only. If enough records stand in
 * front of the position in its page, one request is enough; otherwise the list is walked, or only the end of it if
 * the page index knows where that begins.
 *
 * Both flags are exact, as Relay's cursor connections specification (section 4.4) defines them for `last`.
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
        // The service may refuse the cursor with which the tail begins.
        return undefined;
      },
    );
    if (!run) continue;
    const isEnough = run.isStart || run.edges.length > last || tail === undefined;
    const isRight = run.isMet || border.record === null || tail === undefined;
    if (isEnough && isRight)
      return yield* slice(run.edges, last, border.hasNextPage, run.unplacedErrors);
  }
  throw new TypeError('A whole walk is always enough.');
}

async function readUpTo<R extends Identified>(
  pages: AsyncGenerator<DrainedPage<R>, void, undefined>,
  border: string | null,
  wanted: number,
) {
  let edges: Edge<R>[] = [];
  const unplacedErrors: unknown[] = [];
  let isStart: boolean | undefined;
  for await (const page of pages) {
    const [start] = page.records;
    if (start) isStart ??= page.page.after === null;
    unplacedErrors.push(...page.unplacedErrors);
    const records = page.records.list;
    const met = records.findIndex(({ identity }) => border !== null && identity === border);
    edges.push(...edgesOf(page.page, records.slice(0, met < 0 ? undefined : met)));
    edges = edges.slice(-wanted);
    if (met >= 0) return { edges, unplacedErrors, isStart, isMet: true };
  }
  return { edges, unplacedErrors, isStart: isStart ?? false, isMet: false };
}

function* slice<R>(
  edges: readonly Edge<R>[],
  last: number,
  hasNextPage: boolean,
  unplacedErrors: readonly unknown[],
): Generator<SlicePart<R>, SliceEnd> {
  const wanted = last === 0 ? [] : edges.slice(-last);
  yield { edges: wanted, unplacedErrors };
  return { hasNextPage, hasPreviousPage: edges.length > last };
}

/** Where `before` is in the list as it is now. */
interface Border<R> {
  /** The first record behind the edges; null: they reach to the end of the list. */
  readonly record: string | null;
  readonly hasNextPage: boolean;
  /** The edges in front of it in its page. */
  readonly edges?: readonly Edge<R>[];
  /** Whether these begin at the start of the list. */
  readonly isStart?: boolean;
}

async function borderAt<R extends Identified>(
  list: IndexedList<R>,
  before: Position,
  signal: AbortSignal,
): Promise<Border<R>> {
  const found = await locate(list, before, signal);
  // If the record is gone, the edges reach to the end of its page: records may come twice, but none is skipped.
  if (!('page' in found)) {
    const behind = await firstBehind(list.fetchPage, before.end, signal);
    if (behind === undefined) throw cursorLost(found.refusal?.error);
    if (behind === null || !mayHaveSlid(before, found, behind)) {
      return { record: behind, hasNextPage: behind !== null };
    }
    // If its page ends further to the front than it did, only the end of the list is late enough.
    if (!found.isNear.end) throw cursorLost();
    return { record: null, hasNextPage: false };
  }
  const { page, after, offset } = found;
  const { items, endCursor } = page;
  const edges = edgesOf({ after, endCursor, size: items.length }, items.slice(0, offset));
  return { record: before.identity, hasNextPage: true, edges, isStart: after === null };
}

function edgesOf<R>(page: PageBounds, records: readonly R[]): Edge<R>[] {
  return records.map((record) => ({ record, page }));
}

function noIdentities() {
  return codedError(
    'BAD_USER_INPUT',
    'The records of this list have no id, so the record of `before` cannot be found in other pages. Page forward, with `first` and `after`.',
  );
}
