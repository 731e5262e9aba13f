import type { SubschemaConfig } from '@graphql-tools/delegate';
import type {
  GraphQLFieldResolver,
  GraphQLObjectType,
  GraphQLResolveInfo,
  GraphQLSchema,
} from 'graphql';
import { checkedFirst, readForward } from '../paging/connection.ts';
import { decodeCursor, encodeCursor } from '../paging/cursor.ts';
import { fetchUpstreamPage } from './fetch-upstream-page.ts';
import type { PageInfo } from './generated/served.ts';
import { identitySelection } from './identity-selection.ts';
import { listKey } from './list-key.ts';
import type { Adapter } from './plan-adapters.ts';
import { recordPlaces, responsePath, type RecordPlace } from './response-places.ts';
import type { ServingContext } from './serving-context.ts';
import { recordAt, type UpstreamRecord } from './upstream-record.ts';

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

type Resolver<Source> = GraphQLFieldResolver<Source, ServingContext>;

/** Resolves `…Connection`. */
export function resolveConnection(
  adapter: Adapter,
  subschema: SubschemaConfig,
  upstream: GraphQLSchema,
  max: number,
): Resolver<unknown> {
  const { type, edge } = adapter.connection!;
  const identity = identitySelection(upstream, adapter.nodeType);
  return async (
    _source,
    args: Record<string, unknown>,
    context,
    info,
  ): Promise<ConnectionSource> => {
    const { first, after, ...filters } = args;
    const key = listKey(adapter.name, filters);
    const places = recordPlaces(objectType(info, type), objectType(info, edge), info);
    const slice = await readForward(
      fetchUpstreamPage({
        adapter,
        identity,
        subschema,
        context,
        info,
        filters,
        selections: places.length > 0 ? places.map(({ selections }) => selections) : [[]],
      }),
      {
        first: checkedFirst(first as number | null | undefined, max),
        position: typeof after === 'string' ? decodeCursor(key, after) : null,
        signal: context.signal,
      },
    );
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
export function resolveNodes(
  adapter: Adapter,
  subschema: SubschemaConfig,
): Resolver<ConnectionSource> {
  return ({ edges }, _args, context, info) => {
    const path = responsePath(info.path);
    const place = String(path.at(-1));
    return edges.map((edge, index) =>
      recordOf(edge, place, [...path, index], { adapter, subschema, context, info }),
    );
  };
}

/** Resolves `node` of an edge. */
export function resolveNode(adapter: Adapter, subschema: SubschemaConfig): Resolver<EdgeSource> {
  return (edge, _args, context, info) => {
    const path = responsePath(info.path);
    const place = `${path.at(-3)}.${path.at(-1)}`;
    return recordOf(edge, place, path, { adapter, subschema, context, info });
  };
}

function recordOf(
  { record, places }: EdgeSource,
  place: string,
  path: readonly (string | number)[],
  parts: {
    adapter: Adapter;
    subschema: SubschemaConfig;
    context: ServingContext;
    info: GraphQLResolveInfo;
  },
): unknown {
  const shape = record.shapes[places.findIndex(({ key }) => key === place)];
  if (!shape) throw new TypeError(`Nothing was selected for ${place}.`);
  const { adapter, subschema, context, info } = parts;
  return recordAt(shape, path, adapter.recordType, subschema, context, info);
}

function objectType(info: GraphQLResolveInfo, name: string): GraphQLObjectType {
  return info.schema.getType(name) as GraphQLObjectType;
}
