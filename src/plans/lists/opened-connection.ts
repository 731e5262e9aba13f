import type { AnswerError, Path, UpstreamError } from '../../answers/answer-errors.ts';
import { checkedCounts } from '../../paging/connection/connection-arguments.ts';
import {
  readBackward,
  readForward,
  type Edge,
  type Slice,
  type SliceEnd,
} from '../../paging/connection/slice.ts';
import { CursorEncoder, decodeCursor, type PageBounds } from '../../paging/cursor.ts';
import { drainPages, interrupted } from '../../paging/drain/drain.ts';
import { totalFrom } from '../../paging/drain/service-counts.ts';
import { positionOf } from '../../paging/walk.ts';
import { LARGEST_PAGE } from '../../schema/derived.ts';
import type { Call, Requester } from '../call.ts';
import { holdPages, type ListRecord } from '../output.ts';
import { namingFailed, pageFetcher, type PageSource } from '../pages/fetch-page.ts';
import type { ConnectionShape, EdgeField } from './connection-shape.ts';
import type { DrainedList, DrainArguments } from './drains.ts';
import type { OpenedList } from './list-field.ts';

export type ConnectionEdge = Edge<ListRecord>;

/** One connection with its arguments: read once for all that is selected of it. */
export interface OpenedConnection {
  readonly shape: ConnectionShape;
  /** Whether only `totalCount` is selected, which needs no page of the connection. */
  readonly isTotalOnly: boolean;
  /** Reads the edges of the first page. */
  begin(): Promise<void>;
  /** Reads to the end. */
  finish(): Promise<SliceEnd>;
  /** Returns the edges read so far. */
  edges(): readonly ConnectionEdge[];
  /**
   * Returns the edges page by page.
   *
   * @throws DRAIN_INTERRUPTED after the first page, with `drained` and `resumeAfter`
   */
  parts(): AsyncGenerator<readonly ConnectionEdge[], void, undefined>;
  readonly cursors: CursorEncoder;
  /** Counts the records of the whole list, once. */
  total(): Promise<number>;
  /** Returns the unplaced errors of the pages, each of them once. @param path of the connection */
  takeErrors(path: Path): AnswerError[];
  /** Ends the reading. */
  close(): Promise<void>;
}

/** @throws BAD_USER_INPUT, CURSOR_INVALID */
export function openListConnection(list: OpenedList): OpenedConnection {
  const { field, call, args, keys } = list;
  const { adapter, parts } = field;
  const shape = field.connection!;
  const { after: afterName, last: lastName, before: beforeName } = adapter.connection!;
  const { first, [afterName]: after, [lastName]: last, [beforeName]: before } = args;
  const counts = checkedCounts(first, last, { max: parts.connectionMax, lastName });
  const [from, to] = [decodeCursor(keys.cursors, after), decodeCursor(keys.cursors, before)];
  if (shape.refusal) throw shape.refusal;
  const cursors = new CursorEncoder(keys.cursors);
  const { signal, drainBudget: budget } = call;
  const wanted = shape.fields.filter(({ kind }) => kind !== 'typename');
  let counting: Promise<number> | undefined;
  const reading = createReading(sliceOf(), cursors, call, {
    cursorsOfEdge: cursorsOfEdge(shape),
    onEdges: (edges) => {
      if (counts.last !== undefined) spendForLast(edges);
    },
  });

  return {
    ...reading,
    shape,
    isTotalOnly: wanted.length > 0 && wanted.every(({ kind }) => kind === 'totalCount'),
    cursors,
    total: () => (counting ??= total()),
  };

  function sliceOf(): Slice<ListRecord> {
    const shown = list.source('shown');
    const fetchIdentities = pageFetcher(list.source('bare'), call.forSearch);
    const searched = { fetchIdentities, index: parts.drains.indexOf(keys.walk) };
    // The inlined page ends where it ends, also behind a border.
    const source = to ? { ...shown, inlinedPage: undefined } : shown;
    const fetcher = (requester: Requester) => {
      const fetchPage = pageFetcher(source, requester);
      return writesCursors(shape) ? namingFailed(fetchPage, fetchIdentities) : fetchPage;
    };
    if (counts.last === undefined) {
      return readForward(
        { list: searched, fetchPage: fetcher(call) },
        { first: counts.first, after: from, before: to, signal },
      );
    }
    const walkOf = (what: 'shown' | 'bare') => (tail: DrainArguments['tail']) =>
      drain(list.drained(list.source(what), undefined), { position: from, tail });
    return readBackward(
      {
        list: searched,
        fetchPage: fetcher(call.forSearch),
        walk: walkOf('shown'),
        isCostly: parts.sizes.of(shown.requests.sized) !== undefined,
        walkIdentities: walkOf('bare'),
      },
      { last: counts.last, before: to, after: from, signal },
    );
  }

  /** Reading from the end is charged as a search, so its edges count here. */
  function spendForLast(edges: number): void {
    const page = { first: undefined, after: null };
    const { pages } = field.shown.request(call.variables, page);
    call.pages.spend((edges / LARGEST_PAGE) * pages, { isCharged: true });
  }

  function drain(walked: DrainedList, options: Pick<DrainArguments, 'position' | 'tail'>) {
    const pages = parts.drains.walk(walked, {
      ...options,
      limit: undefined,
      call,
      keepsAll: false,
      isSearch: true,
    });
    const { position } = options;
    const limit = undefined;
    return drainPages(pages, {
      limit,
      position,
      budget,
      signal,
      toCursor: (at) => cursors.encode(at),
      // A part of a count, or of what is read from the end, is of no use.
      given: 'result',
    });
  }

  /** Asks the service, unless the list's first page is known to be the whole list; undefined if its count is not that. */
  async function countOfService({ inlinedPage }: PageSource): Promise<number | undefined> {
    const { counts: known } = parts.drains;
    const inlined = inlinedPage?.page;
    if (known.isRefuted(keys.walk) || inlined?.hasNextPage === false) return undefined;
    const page =
      inlined?.total === undefined
        ? await pageFetcher(list.source('bare'), call)({ first: 1, after: null }, signal)
        : inlined;
    known.note(keys.walk, page);
    return totalFrom(known, keys.walk, page);
  }

  async function total(): Promise<number> {
    // Read now: a mutation replaces `drains.totals`, so a count that it overtakes is not kept for later operations.
    const { totals } = parts.drains;
    const known = totals.of(keys.walk);
    if (known !== undefined) return known;
    const shown = list.source('shown');
    const counted = adapter.count === undefined ? undefined : await countOfService(shown);
    if (counted !== undefined) {
      totals.counted(keys.walk, counted);
      return counted;
    }
    let count = 0;
    // The inlined first page may be the whole list.
    const walked = shown.inlinedPage
      ? list.drained(shown, undefined)
      : list.drained(list.source('bare'), list.isNested ? undefined : 'total');
    for await (const { records } of drain(walked, { position: null })) count += records.length;
    totals.counted(keys.walk, count);
    return count;
  }
}

/** How many times the cursor of each edge is written. */
function cursorsOfEdge({ fields }: ConnectionShape): number {
  return fields.flatMap((field) => (field.kind === 'edges' ? field.fields : [])).filter(isCursor)
    .length;
}

/** Whether the answer may have a cursor: an edge's, one of `pageInfo`, or that of a stream that ends early. */
function writesCursors({ fields }: ConnectionShape): boolean {
  return fields.some((field) => {
    if (field.kind === 'pageInfo') return field.fields.some(({ kind }) => kind.endsWith('Cursor'));
    if (field.kind !== 'edges' && field.kind !== 'nodes') return false;
    const isStreamed = field.nodes.some(({ directives = [] }) =>
      directives.some(({ name }) => name.value === 'stream'),
    );
    return isStreamed || (field.kind === 'edges' && field.fields.some(isCursor));
  });
}

function isCursor({ kind }: EdgeField): boolean {
  return kind === 'cursor';
}

interface ReadingParts {
  readonly cursorsOfEdge: number;
  readonly onEdges: (count: number) => void;
}

function createReading(
  slice: Slice<ListRecord>,
  cursors: CursorEncoder,
  call: Call,
  { cursorsOfEdge: written, onEdges }: ReadingParts,
) {
  const read: (readonly ConnectionEdge[])[] = [];
  const errors: UpstreamError[] = [];
  let end: SliceEnd | undefined;
  /** Kept when it fails, so that all later reads fail in the same way. */
  let reading: Promise<void> | undefined;

  return {
    edges: (): readonly ConnectionEdge[] => (read.length === 1 ? read[0]! : read.flat()),
    parts,
    finish,
    takeErrors: (path: Path): AnswerError[] =>
      errors.splice(0).map((error) => ({ ...error, path })),
    begin: async () => {
      if (!end && read.length === 0) await readOn();
    },
    close: async () => {
      await slice.return(NOWHERE);
    },
  };

  async function finish(): Promise<SliceEnd> {
    for (;;) {
      if (end) return end;
      await readOn();
    }
  }

  function readOn(): Promise<void> {
    reading ??= readNext();
    return reading;
  }

  async function readNext(): Promise<void> {
    const { done, value } = await slice.next();
    if (done) {
      end = value;
    } else {
      onEdges(value.edges.length);
      errors.push(...(value.unplacedErrors as readonly UpstreamError[]));
      // `reading` is still set: another reader would otherwise read the next page before this one is kept.
      await holdPages(call, value.edges);
      const waiting =
        written > 0 ? call.hold(value.edges, written * cursorBytes(value.edges)) : undefined;
      if (waiting) await waiting;
      read.push(value.edges);
    }
    reading = undefined;
  }

  function cursorBytes(edges: readonly ConnectionEdge[]): number {
    let bytes = 0;
    let each = 0;
    let last: PageBounds | undefined;
    for (const { page } of edges) {
      if (page !== last) each = cursors.lengthIn((last = page));
      bytes += each;
    }
    return bytes;
  }

  async function* parts(): AsyncGenerator<readonly ConnectionEdge[], void, undefined> {
    let drained = 0;
    for (let part = 0; ; part += 1) {
      try {
        if (part >= read.length && !end) await readOn();
      } catch (error) {
        const last = read.findLast((edges) => edges.length > 0)?.at(-1);
        if (!last) throw error;
        throw interrupted(error, {
          drained,
          resumeAfter: cursors.encode(positionOf(last.page, last.record)),
          given: 'parts',
        });
      }
      const edges = read[part];
      if (!edges) return;
      drained += edges.length;
      yield edges;
    }
  }
}

const NOWHERE = { hasNextPage: false, hasPreviousPage: false };
