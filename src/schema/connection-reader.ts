import type { GraphQLResolveInfo } from 'graphql';
import { readBackward } from '../paging/connection/backward.ts';
import { checkedCounts } from '../paging/connection/connection-arguments.ts';
import type { Slice } from '../paging/connection/connection-slice.ts';
import { decodeCursor, encodeCursor, type Position } from '../paging/place/cursor.ts';
import { drainPages } from '../paging/drain.ts';
import { readForward } from '../paging/connection/forward.ts';
import type { UpstreamLink } from './asking/upstream-link.ts';
import type { DrainedList, Drains, WalkOptions } from './drains.ts';
import type { IdentitySelection } from './asking/identity-selection.ts';
import { cursorKey, walkKey } from './list-key.ts';
import type { NestedList } from './nested-list.ts';
import { pageFetcher, type PageSource } from './asking/page-fetcher.ts';
import type { Adapter } from './derivation/adapter.ts';
import type { UpstreamRecord } from './asking/read-page.ts';
import type { RecordPlace } from './asking/response-places.ts';
import type { ServingContext } from './serving-context.ts';

/** What the arguments of one connection field come to. */
export interface ConnectionReader {
  /** The stretch that is asked for. */
  read(): Slice<UpstreamRecord>;
  /** Counts the records of the whole list. */
  total(): Promise<number>;
  cursorOf(position: Position): string;
}

export interface ConnectionParts {
  readonly adapter: Adapter;
  readonly identity: IdentitySelection;
  readonly link: UpstreamLink;
  readonly drains: Drains;
  /** The largest `first` and `last`. */
  readonly max: number;
}

export interface ConnectionCall {
  readonly args: Readonly<Record<string, unknown>>;
  readonly context: ServingContext;
  readonly info: GraphQLResolveInfo;
  /** Where the operation shows records. */
  readonly places: readonly RecordPlace[];
  /** Below another object than the root. */
  readonly nested: NestedList | undefined;
}

/** @throws BAD_USER_INPUT, CURSOR_INVALID */
export function connectionReader(
  { adapter, identity, link, drains, max }: ConnectionParts,
  { args, context, info, places, nested }: ConnectionCall,
): ConnectionReader {
  const { last: lastName, before: beforeName } = adapter.connection!;
  const { first, after, [lastName]: last, [beforeName]: before, ...filters } = args;
  const { name = adapter.name, walkName = name, ridden, ...reach } = nested ?? {};
  const key = walkKey(walkName, filters);
  const cursors = cursorKey(name, filters);
  const cursorOf = (position: Position) => encodeCursor(cursors, position);
  const positionOf = (cursor: unknown) =>
    typeof cursor === 'string' ? decodeCursor(cursors, cursor) : null;
  const counts = checkedCounts(first, last, { max, lastName });
  const [from, to] = [positionOf(after), positionOf(before)];
  const { signal, drainBudget: budget } = context;

  const counted: PageSource = {
    adapter,
    identity,
    link,
    info,
    filters,
    selections: [[]],
    ...reach,
  };
  const shown: PageSource = {
    ...counted,
    ridden,
    selections: places.length > 0 ? places.map(({ selections }) => selections) : [[]],
  };
  const list = (source: PageSource, selection?: string): DrainedList => ({
    key,
    field: `${adapter.parent}.${adapter.name}`,
    fetcher: (asking) => pageFetcher({ ...source, context: asking }),
    selection,
    isNested: nested !== undefined,
    hasFirstPage: source.ridden !== undefined,
  });
  const drain = (walked: DrainedList, options: Pick<WalkOptions, 'position' | 'tail'>) => {
    const pages = drains.walk(walked, { ...options, limit: undefined, context, keepsAll: false });
    const { position } = options;
    return drainPages(pages, {
      limit: undefined,
      position,
      budget,
      signal,
      toCursor: cursorOf,
      isWholeOnly: true,
    });
  };

  return { read, total, cursorOf };

  function read(): Slice<UpstreamRecord> {
    const searched = {
      fetchPage: pageFetcher({ ...shown, context }),
      memory: drains.memoryOf(key),
    };
    if (counts.last === undefined) {
      return readForward(searched, { first: counts.first, after: from, before: to, signal });
    }
    return readBackward(
      { list: searched, walk: (tail) => drain(list(shown), { position: from, tail }) },
      { last: counts.last, before: to, after: from, signal },
    );
  }

  async function total(): Promise<number> {
    // A count that is under way when a mutation comes leaves nothing for those after it.
    const { totals } = drains;
    const known = totals.of(key);
    if (known !== undefined) return known;
    let count = 0;
    // The page that rode along may be all there is.
    const walked = ridden ? list(shown) : list(counted, 'total');
    for await (const { records } of drain(walked, { position: null })) count += records.length;
    totals.counted(key, count);
    return count;
  }
}
