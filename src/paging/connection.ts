import { codedError } from '../errors.ts';
import type { PageBounds, Position } from './cursor.ts';
import type { DrainedPage } from './drain.ts';
import type { Tail } from './list-walk.ts';
import { cursorLost, mayBeOfRecords } from './failures.ts';
import {
  firstBehind,
  locate,
  mayHaveSlid,
  readAsFar,
  walkBehind,
  type IndexedList,
  type Located,
} from './find.ts';
import type { FetchPage, Identified } from './page.ts';
import { walk, type WalkedPages } from './walk.ts';

/** The edges of a connection, page by page; returns its flags. */
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

interface ForwardOptions {
  /** Undefined: one page, of the size that the service chooses. */
  readonly first: number | undefined;
  /** The record before the first edge; null: the start of the list. */
  readonly after: Position | null;
  /** The record behind the last edge; null: the end of the list. */
  readonly before: Position | null;
  readonly signal: AbortSignal;
}

interface ForwardSource<R> {
  /** The list in which the records of cursors are located. */
  readonly list: IndexedList;
  /** Fetches the pages of the edges. */
  readonly fetchPage: FetchPage<R>;
}

/**
 * Reads the `first` records behind a position, over as many pages as that takes.
 *
 * `hasPreviousPage` is true whenever the caller sent a cursor, without a request: the record of the cursor itself
 * precedes the edges (Relay's cursor connections specification leaves it to the server).
 */
export async function* readForward<R extends Identified>(
  source: ForwardSource<R>,
  options: ForwardOptions,
): Slice<R> {
  const { list, fetchPage } = source;
  const { first, after, before, signal } = options;
  const hasPreviousPage = after !== null;
  if (before) {
    const hasNextPage = yield* readBetween(source, { ...options, before });
    return { hasNextPage, hasPreviousPage };
  }
  const readOn = <T extends Identified>(
    fetch: FetchPage<T>,
    bound: { limit?: number; maxPages?: number },
  ) => walkBehind(list, after, (from) => walk(fetch, { after: from, signal, ...bound }), signal);
  if (first === 0) {
    let hasNextPage = false;
    for await (const page of readOn(orIdentities(fetchPage, list), { limit: 1 })) {
      hasNextPage = page.records.length > 0 || page.hasNextPage;
      yield { edges: [], unplacedErrors: page.unplacedErrors ?? [] };
    }
    return { hasNextPage, hasPreviousPage };
  }
  const pages = readOn(fetchPage, first === undefined ? { maxPages: 1 } : { limit: first });
  const hasNextPage = yield* edgesFrom(pages, first);
  return { hasNextPage, hasPreviousPage };
}

/**
 * Reads the `first` records between two positions. They are first counted by their identities: a record whose selection
 * fails matters only if it is one of them.
 *
 * @returns whether more records follow
 */
async function* readBetween<R extends Identified>(
  { list, fetchPage }: ForwardSource<R>,
  { first, after, before, signal }: ForwardOptions & { readonly before: Position },
): AsyncGenerator<SlicePart<R>, boolean, undefined> {
  const border = await borderAt(list, before, signal);
  const span = await spanUpTo(border, list, { first, after, signal });
  if (span.records === 0) return span.hasNextPage;
  const pages = walk(fetchPage, { after: span.start, limit: span.records, signal });
  let last: string | null = null;
  for await (const { edges, unplacedErrors } of edgesFrom(pages, span.records)) {
    const records = edges.map(({ record }) => record);
    // The list may have changed since the count.
    const met = indexOf(border, records);
    yield { edges: met < 0 ? edges : edges.slice(0, met), unplacedErrors };
    if (met >= 0) return first === undefined && border.hasNextPage;
    last = records.at(-1)?.identity ?? null;
  }
  return span.hasNextPage || (last !== null && last !== span.last);
}

/** @param records the number to read; undefined: all @returns whether more follow */
async function* edgesFrom<R extends Identified>(
  pages: WalkedPages<R>,
  records = Number.POSITIVE_INFINITY,
): AsyncGenerator<SlicePart<R>, boolean, undefined> {
  let left = records;
  let hasMore = false;
  for await (const page of pages) {
    const edges = edgesOf(page, page.records.first(left).list);
    left -= edges.length;
    hasMore = page.records.length > edges.length || page.hasNextPage;
    yield { edges, unplacedErrors: page.unplacedErrors ?? [] };
  }
  return hasMore;
}

/** Fetches identities where a page fails whose records are not needed. */
function orIdentities<R extends Identified>(
  fetchPage: FetchPage<R>,
  { fetchIdentities }: IndexedList,
): FetchPage<R | Identified> {
  return async (request, signal) => {
    try {
      return await fetchPage(request, signal);
    } catch (error) {
      if (!mayBeOfRecords(error, signal)) throw error;
      return fetchIdentities(request, signal);
    }
  };
}

/** Records in front of a border. */
interface Span {
  /** The cursor at which the span begins. */
  readonly start: string | null;
  readonly records: number;
  /** The identity of its last record. */
  readonly last: string | null;
  readonly hasNextPage: boolean;
}

/** Counts the records between a position and a border: at most `first`, or a page of them. */
async function spanUpTo(
  border: Border,
  list: IndexedList,
  { first, after, signal }: Pick<ForwardOptions, 'first' | 'after' | 'signal'>,
): Promise<Span> {
  // One record more than needed shows whether another follows.
  const bound = first === undefined ? { maxPages: 1 } : { limit: first + 1 };
  const begin = (from: string | null) =>
    walk(list.fetchIdentities, { after: from, signal, ...bound });
  let start: string | null | undefined;
  let counted = 0;
  let last: string | null = null;
  let hasMore = false;
  for await (const page of walkBehind(list, after, begin, signal)) {
    // Null is the start of the list.
    if (start === undefined) start = page.after;
    const met = indexOf(border, page.records.list);
    const inFront = page.records.first(met < 0 ? Number.POSITIVE_INFINITY : met);
    last =
      inFront.first((first ?? Number.POSITIVE_INFINITY) - counted).list.at(-1)?.identity ?? last;
    counted += inFront.length;
    hasMore = met < 0 && page.hasNextPage;
    if (met >= 0) break;
  }
  const records = first === undefined ? counted : Math.min(counted, first);
  return {
    start: start ?? null,
    records,
    last,
    // Without `first`, the edges end at their page or at the border, whose record then follows.
    hasNextPage: counted > records || hasMore || (first === undefined && border.hasNextPage),
  };
}

interface BackwardOptions {
  readonly last: number;
  /** The record behind the last edge; null: the end of the list. */
  readonly before: Position | null;
  /** The record before the first edge; null: the start of the list. */
  readonly after: Position | null;
  readonly signal: AbortSignal;
}

/** Walks to the end of a list, from the latest page that the tail allows. */
type WalkToEnd<R> = (tail: Tail | undefined) => AsyncGenerator<DrainedPage<R>, void, undefined>;

interface BackwardSource<R> extends ForwardSource<R> {
  readonly walk: WalkToEnd<R>;
  /** Whether the service returns fewer records than identities per page: then only the edges are read in full. */
  readonly isCostly: boolean;
  /** The same walk over identities only. */
  readonly walkIdentities: WalkToEnd<Identified>;
}

/**
 * Reads the `last` records before a position. The upstream pages forward only. One request is enough if the page of the
 * position holds enough records before it; otherwise the list is walked, or only its end if the page index knows where
 * that begins.
 *
 * Walked records that are not among the edges must not make them fail: if a page fails, or the record of the position
 * is missing because it is null, the list is walked again by identities, and then only the edges are read.
 *
 * Both flags are exact, as Relay's cursor connections specification (section 4.4) defines them for `last`.
 */
export async function* readBackward<R extends Identified>(
  source: BackwardSource<R>,
  { last, before, after, signal }: BackwardOptions,
): Slice<R> {
  const { list, fetchPage } = source;
  const upToBefore = before && !after ? await pageUpTo(fetchPage, before, signal) : undefined;
  if (upToBefore && isEnough(upToBefore, last)) return yield* slice(upToBefore, last, true);
  const border = before ? await borderAt(list, before, signal) : END;
  if (!upToBefore && border.at && !after) {
    const front = await pageUpTo(fetchPage, { ...border.at, identity: undefined }, signal);
    const isFront = front && areSame(front.edges, border.at.page.items.slice(0, border.at.offset));
    if (isFront && isEnough(front, last)) return yield* slice(front, last, border.hasNextPage);
  }
  const bounds = { border, last, after };
  const walked = source.isCostly ? undefined : runTo(source.walk, bounds, false);
  const run = await walked?.catch((error: unknown) => {
    if (!mayBeOfRecords(error, signal)) throw error;
    return undefined;
  });
  if (run && (run.isMet || border.record === null))
    return yield* slice(run, last, border.hasNextPage);
  for (let attempt = 1; ; attempt += 1) {
    const named = await runTo(source.walkIdentities, bounds, true);
    const window = await readWindow(source, lastOf(named, last), signal);
    // After the last attempt, a list that keeps changing is returned as it was read.
    if (!window.isSame && attempt < MAX_ATTEMPTS) continue;
    yield window;
    return { hasNextPage: border.hasNextPage, hasPreviousPage: named.edges.length > last };
  }
}

const MAX_ATTEMPTS = 3;

/** Records before a border, as far back as they were read. */
interface Run<R> {
  readonly edges: readonly Edge<R>[];
  readonly unplacedErrors: readonly unknown[];
  /** Whether it begins at the start of the list. */
  readonly isStart: boolean;
}

function isEnough({ edges, isStart }: Run<unknown>, last: number): boolean {
  return isStart || edges.length > last;
}

/**
 * Reads the records before a position from its page.
 *
 * @param position if `identity` is undefined, only the records before the position are read
 * @returns undefined if the record is not at its position, or the page cannot be read
 */
async function pageUpTo<R extends Identified>(
  fetchPage: FetchPage<R>,
  {
    after,
    offset,
    identity,
  }: Pick<Position, 'after' | 'offset'> & { identity: string | null | undefined },
  signal: AbortSignal,
): Promise<Run<R> | undefined> {
  const isStart = after === null;
  const first = identity === undefined ? offset : offset + 1;
  if (first === 0) return { edges: [], unplacedErrors: [], isStart };
  const request = { after, first };
  const mayFail = (error: unknown) => mayBeOfRecords(error, signal);
  const read = await readAsFar(fetchPage, request, signal, mayFail);
  if ('error' in read) return undefined;
  const edges = read.pages.flatMap(({ after: from, page: { items, endCursor } }) =>
    edgesOf({ after: from, endCursor, size: items.length }, items),
  );
  if (edges.length < first) return undefined;
  if (identity !== undefined && identity !== null && edges[offset]!.record.identity !== identity)
    return undefined;
  const unplacedErrors = read.pages.flatMap(({ page }) => page.unplacedErrors ?? []);
  return { edges: edges.slice(0, offset), unplacedErrors, isStart };
}

interface RunOptions extends Pick<BackwardOptions, 'last' | 'after'> {
  readonly border: Border;
}

/**
 * Walks to a border, beginning as late as possible.
 *
 * @param orAll whether to walk the whole list if that fails: the service may refuse the cursor at which the walk begins
 */
async function runTo<R extends Identified>(
  walkToEnd: WalkToEnd<R>,
  { border, last, after }: RunOptions,
  orAll: boolean,
): Promise<Run<R> & { readonly isMet: boolean }> {
  if (!after) {
    const tail = { records: last + 1, before: border.record };
    const late = await readUpTo(walkToEnd(tail), border, last + 1).catch((error: unknown) => {
      if (!orAll) throw error;
      return undefined;
    });
    if (late && isEnough(late, last) && (late.isMet || border.record === null)) return late;
  }
  return readUpTo(walkToEnd(undefined), border, last + 1);
}

async function readUpTo<R extends Identified>(
  pages: AsyncGenerator<DrainedPage<R>, void, undefined>,
  border: Border,
  count: number,
): Promise<Run<R> & { readonly isMet: boolean }> {
  let edges: Edge<R>[] = [];
  const unplacedErrors: unknown[] = [];
  let isStart: boolean | undefined;
  for await (const page of pages) {
    if (page.records.length > 0) isStart ??= page.page.after === null;
    unplacedErrors.push(...page.unplacedErrors);
    const records = page.records.list;
    const met = indexOf(border, records);
    edges.push(...edgesOf(page.page, records.slice(0, met < 0 ? undefined : met)));
    edges = edges.slice(-count);
    if (met >= 0) return { edges, unplacedErrors, isStart: isStart ?? false, isMet: true };
  }
  return { edges, unplacedErrors, isStart: isStart ?? false, isMet: false };
}

function* slice<R>(
  run: Run<R>,
  last: number,
  hasNextPage: boolean,
): Generator<SlicePart<R>, SliceEnd> {
  yield { edges: lastOf(run, last), unplacedErrors: run.unplacedErrors };
  return { hasNextPage, hasPreviousPage: run.edges.length > last };
}

function lastOf<R>({ edges }: Run<R>, count: number): readonly Edge<R>[] {
  return count === 0 ? [] : edges.slice(-count);
}

/** Reads only the records that a walk over identities met. */
async function readWindow<R extends Identified>(
  { list, fetchPage }: ForwardSource<R>,
  named: readonly Edge<Identified>[],
  signal: AbortSignal,
): Promise<SlicePart<R> & { readonly isSame: boolean }> {
  const edges: Edge<R>[] = [];
  const unplacedErrors: unknown[] = [];
  const [head] = named;
  if (!head) return { edges, unplacedErrors, isSame: true };
  const { page, record } = head;
  // Only the last record of a page has a service cursor.
  const request = { after: page.after, first: record.index };
  const inFront =
    record.index > 0 && (await readAsFar(list.fetchIdentities, request, signal, NEVER));
  const start = inFront && 'pages' in inFront ? inFront.pages.at(-1)!.page.endCursor : page.after;
  if (inFront && start === null) return { edges, unplacedErrors, isSame: false };
  for await (const part of edgesFrom(
    walk(fetchPage, { after: start, limit: named.length, signal }),
    named.length,
  )) {
    edges.push(...part.edges);
    unplacedErrors.push(...part.unplacedErrors);
  }
  const records = named.map((edge) => edge.record);
  return { edges, unplacedErrors, isSame: areSame(edges, records) };
}

const NEVER = () => false;

/** Whether these are the records that were located before: the list may have changed. A null record matches any. */
function areSame(edges: readonly Edge<Identified>[], located: readonly Identified[]): boolean {
  return located.every(({ identity }, at) => {
    const read = edges[at]?.record;
    return read !== undefined && (read.identity === null || read.identity === identity);
  });
}

/** The position of `before` in the list as it is now. */
interface Border {
  /** The first record behind the edges; null: the edges end at the end of the list. */
  readonly record: string | null;
  readonly hasNextPage: boolean;
  /** Undefined if the record of `before` is gone. */
  readonly at?: Located;
}

const END: Border = { record: null, hasNextPage: false };

async function borderAt(list: IndexedList, before: Position, signal: AbortSignal): Promise<Border> {
  const located = await locate(list, before, signal);
  if ('page' in located) {
    // If the cursor has no identity, its record was null when the cursor was made.
    const { identity } = located.page.items[located.offset]!;
    if (identity === null) throw noIdentities();
    return { record: identity, hasNextPage: true, at: located };
  }
  // If the record is gone, the edges end at the end of its page: records may repeat, but none is skipped.
  const behind = await firstBehind(list.fetchIdentities, before.end, signal);
  if (behind === undefined) throw cursorLost(located.refusal?.error);
  if (behind === null || !mayHaveSlid(before, located, behind)) {
    return { record: behind, hasNextPage: behind !== null };
  }
  // If its page now ends earlier in the list, only the end of the list is late enough.
  if (!located.isNear.end) throw cursorLost();
  return END;
}

function indexOf({ record }: Border, records: readonly Identified[]): number {
  return record === null ? -1 : records.findIndex(({ identity }) => identity === record);
}

function edgesOf<R>(page: PageBounds, records: readonly R[]): Edge<R>[] {
  return records.map((record) => ({ record, page }));
}

function noIdentities() {
  return codedError(
    'BAD_USER_INPUT',
    'The record of `before` has no id, so it cannot be found in other pages. Page forward, with `first` and `after`.',
  );
}

interface ConnectionCounts {
  readonly first: number | undefined;
  readonly last: number | undefined;
}

/**
 * Checks the counts of a connection. Null counts as absent: Relay sends the variables of the other direction as null.
 *
 * @param lastName the name of `last` in this list
 * @throws BAD_USER_INPUT, also if both counts are set, which the specification only discourages
 */
export function checkedCounts(
  first: unknown,
  last: unknown,
  { max, lastName }: { max: number; lastName: string },
): ConnectionCounts {
  const counts = {
    first: typeof first === 'number' ? checkedCount('first', first, max) : undefined,
    last: typeof last === 'number' ? checkedCount(lastName, last, max) : undefined,
  };
  if (counts.first !== undefined && counts.last !== undefined) {
    throw codedError(
      'BAD_USER_INPUT',
      `\`first\` and \`${lastName}\` cannot be given together: use \`first\` with \`after\` to page forward, \`${lastName}\` with \`before\` to page backward.`,
    );
  }
  return counts;
}

/** @throws BAD_USER_INPUT */
export function checkedCount(name: string, count: number, max = Number.POSITIVE_INFINITY): number {
  if (count < 0) {
    throw codedError('BAD_USER_INPUT', `\`${name}\` must not be negative, but it is ${count}.`);
  }
  if (count > max) {
    throw codedError(
      'BAD_USER_INPUT',
      `\`${name}\` is at most ${max}, but it is ${count}. Request further pages for the rest, or drain the list with its \`all\` field.`,
    );
  }
  return count;
}
