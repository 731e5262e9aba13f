import type { GraphQLError, GraphQLFieldResolver } from 'graphql';
import { checkedFirst, readForward } from '../paging/connection.ts';
import { decodeCursor, encodeCursor } from '../paging/cursor.ts';
import type { UpstreamLink } from './ask-upstream.ts';
import type { PageInfo, QueryPersonsConnectionArgs } from './generated/served.ts';
import { identitySelection } from './identity-selection.ts';
import { listKey } from './list-key.ts';
import type { FindNestedList } from './nested-list.ts';
import { nullForNullList, pageFetcher, surplusOf } from './page-fetcher.ts';
import type { Adapter } from './plan-adapters.ts';
import { checked } from './read-field.ts';
import type { UpstreamRecord } from './read-page.ts';
import {
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
}

export interface EdgeSource {
  readonly cursor: string;
  readonly record: UpstreamRecord;
  readonly places: readonly RecordPlace[];
}

/** Every connection field takes what that of the snapshot's own list takes, and its filters. */
type ConnectionArguments = QueryPersonsConnectionArgs & Record<string, unknown>;

type Resolver<Source, Arguments = unknown> = GraphQLFieldResolver<
  Source,
  ServingContext,
  Arguments
>;

/** Resolves `…Connection`. */
export function resolveConnection(
  adapter: Adapter,
  link: UpstreamLink,
  max: number,
  findList?: FindNestedList,
): Resolver<unknown, ConnectionArguments> {
  const identity = identitySelection(link.schema, adapter.nodeType);
  return async (source, args, context, info): Promise<ConnectionSource | null> => {
    const { first, after, ...filters } = args;
    const places = recordPlaces(adapter.connection!, selectionContext(info), info.fieldNodes);
    const { name = adapter.name, ...list } = findList?.(source, info, places) ?? {};
    const key = listKey(name, filters);
    const slice = await readForward(
      pageFetcher({
        adapter,
        identity,
        link,
        context,
        info,
        filters,
        selections: places.length > 0 ? places.map(({ selections }) => selections) : [[]],
        ...list,
      }),
      {
        first: checkedFirst(first, max),
        position: typeof after === 'string' ? decodeCursor(key, after) : null,
        signal: context.signal,
      },
    ).catch((error: unknown) => {
      context.surplusErrors.push(...errorsAt(responsePath(info.path), surplusOf(error)));
      return nullForNullList(error);
    });
    if (!slice) return null;
    context.surplusErrors.push(...errorsAt(responsePath(info.path), slice.beside));
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
    };
  };
}

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
