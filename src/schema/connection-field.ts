import type { GraphQLError, GraphQLFieldResolver } from 'graphql';
import { readBackward } from '../paging/backward.ts';
import { checkedCounts } from '../paging/connection-arguments.ts';
import { decodeCursor, encodeCursor } from '../paging/cursor.ts';
import { drainPages } from '../paging/drain.ts';
import { readForward } from '../paging/forward.ts';
import type { UpstreamLink } from './ask-upstream.ts';
import type { DrainedList, Drains } from './drains.ts';
import type { PageInfo } from './generated/served.ts';
import { identitySelection } from './identity-selection.ts';
import { listKey } from './list-key.ts';
import type { FindNestedList } from './nested-list.ts';
import { nullForNullList, pageFetcher, surplusOf, type PageSource } from './page-fetcher.ts';
import type { Adapter } from './plan-adapters.ts';
import { checked } from './read-field.ts';
import type { UpstreamRecord } from './read-page.ts';
import {
  namesBelow,
  recordPlaces,
  responsePath,
  selectionContext,
  type RecordPlace,
} from './response-places.ts';
import type { ServingContext } from './serving-context.ts';
import { errorsAt, valueAt, type ResponsePath } from './upstream-value.ts';

/** What a connection field resolves to; the resolvers below read it. */
export interface ConnectionSource {
  readonly edges: readonly EdgeSource[];
  readonly pageInfo: PageInfo;
  /** Counts the records of the whole list. */
  readonly total: () => Promise<number>;
}

export interface EdgeSource {
  readonly cursor: string;
  readonly record: UpstreamRecord;
  readonly places: readonly RecordPlace[];
}

type Resolver<Source, Arguments = unknown> = GraphQLFieldResolver<
  Source,
  ServingContext,
  Arguments
>;

export interface ConnectionParts {
  readonly adapter: Adapter;
  readonly link: UpstreamLink;
  readonly drains: Drains;
  /** The largest `first` and `last`. */
  readonly max: number;
  readonly findList?: FindNestedList | undefined;
}

/** Resolves `…Connection`. */
export function resolveConnection(
  parts: ConnectionParts,
): Resolver<unknown, Readonly<Record<string, unknown>>> {
  const { adapter, link, drains, max, findList } = parts;
  const names = adapter.connection!;
  const identity = identitySelection(link.schema, adapter.nodeType);
  return async (source, args, context, info): Promise<ConnectionSource | null> => {
    const { first, after, [names.last]: last, [names.before]: before, ...filters } = args;
    const selected = selectionContext(info);
    const places = recordPlaces(names, selected, info.fieldNodes);
    const { name = adapter.name, ridden, ...reach } = findList?.(source, info, places) ?? {};
    const key = listKey(name, filters);
    const positionOf = (cursor: unknown) =>
      typeof cursor === 'string' ? decodeCursor(key, cursor) : null;
    const counts = checkedCounts(first, last, { max, lastName: names.last });
    const [from, to] = [positionOf(after), positionOf(before)];
    const { signal, drainBudget: budget, surplusErrors } = context;
    const at = responsePath(info.path);

    const asked = { adapter, identity, link, info, filters, ...reach };
    const shown = {
      ...asked,
      ridden,
      selections: places.length > 0 ? places.map(({ selections }) => selections) : [[]],
    };
    const walked = (pages: PageSource): DrainedList => ({
      key,
      field: `${adapter.parent}.${adapter.name}`,
      fetcher: (asking) => pageFetcher({ ...pages, context: asking }),
      selection: undefined,
      isNested: findList !== undefined,
    });
    const drained = (pages: ReturnType<Drains['walk']>) =>
      drainPages(pages, {
        limit: undefined,
        position: null,
        budget,
        signal,
        toCursor: (position) => encodeCursor(key, position),
      });

    const total = async () => {
      const known = drains.totals.of(key);
      if (known !== undefined) return known;
      const counted = ridden
        ? walked(shown)
        : { ...walked({ ...asked, selections: [[]] }), selection: 'total' };
      let count = 0;
      const all = { position: null, limit: undefined, context, keepsAll: false };
      for await (const { records } of drained(drains.walk(counted, all))) count += records.length;
      drains.totals.counted(key, count);
      return count;
    };
    const read = () => {
      const fetchPage = pageFetcher({ ...shown, context });
      if (counts.last === undefined) {
        return readForward(fetchPage, { first: counts.first, after: from, before: to, signal });
      }
      const walk = { position: from, limit: undefined, context, keepsAll: false };
      return readBackward(
        { fetchPage, walk: (tail) => drained(drains.walk(walked(shown), { ...walk, tail })) },
        { last: counts.last, before: to, after: from, signal },
      );
    };
    const orNull = (error: unknown) => {
      surplusErrors.push(...errorsAt(at, surplusOf(error)));
      return nullForNullList(error);
    };
    // Who wants nothing but the total needs no page.
    const wanted = namesBelow(names.type, selected, info.fieldNodes);
    if (wanted.every((field) => field === 'totalCount') && wanted.length > 0) {
      const counted = await total().catch(orNull);
      return counted === null
        ? null
        : { edges: [], pageInfo: NOWHERE, total: () => Promise.resolve(counted) };
    }
    const slice = await read().catch(orNull);
    if (!slice) return null;
    surplusErrors.push(...errorsAt(at, slice.beside));
    const edges = slice.edges.map(({ record, position }) => ({
      record,
      places,
      cursor: encodeCursor(key, position),
    }));
    return {
      edges,
      pageInfo: {
        hasNextPage: slice.hasNextPage,
        hasPreviousPage: slice.hasPreviousPage,
        startCursor: edges[0]?.cursor ?? null,
        endCursor: edges.at(-1)?.cursor ?? null,
      },
      total,
    };
  };
}

const NOWHERE: PageInfo = {
  hasNextPage: false,
  hasPreviousPage: false,
  startCursor: null,
  endCursor: null,
};

/** Resolves `totalCount` of a connection. */
export const resolveTotal: Resolver<ConnectionSource> = ({ total }, _args, context, { path }) =>
  total().catch((error: unknown) => {
    context.surplusErrors.push(...errorsAt(responsePath(path), surplusOf(error)));
    return nullForNullList(error);
  });

/** Resolves `nodes` of a connection. */
export function resolveNodes(adapter: Adapter): Resolver<ConnectionSource> {
  return ({ edges }, _args, { surplusErrors }, { path, schema }) => {
    const at = responsePath(path);
    const place = String(at.at(-1));
    return edges.map((edge, index) =>
      checked(recordAt(edge, place, [...at, index], surplusErrors), adapter.recordType, schema),
    );
  };
}

/** Resolves `node` of an edge. */
export function resolveNode(adapter: Adapter): Resolver<EdgeSource> {
  return (edge, _args, { surplusErrors }, { path, schema }) => {
    const at = responsePath(path);
    const place = `${at.at(-3)}.${at.at(-1)}`;
    return checked(recordAt(edge, place, at, surplusErrors), adapter.recordType, schema);
  };
}

function recordAt(
  { record, places }: EdgeSource,
  place: string,
  path: ResponsePath,
  surplus: GraphQLError[],
): unknown {
  const shape = record.shapes[places.findIndex(({ key }) => key === place)];
  if (!shape) throw new TypeError(`Nothing was selected for ${place}.`);
  return valueAt(shape, path, surplus);
}
