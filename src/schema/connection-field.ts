import type { GraphQLError, GraphQLFieldResolver } from 'graphql';
import { connectionReader, type ConnectionParts } from './connection-reader.ts';
import type { PageInfo } from './generated/served.ts';
import { identitySelection } from './identity-selection.ts';
import type { FindNestedList } from './nested-list.ts';
import { nullForNullList, surplusOf } from './page-fetcher.ts';
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

/** Resolves `…Connection`. */
export function resolveConnection(
  parts: Omit<ConnectionParts, 'identity'>,
  findList: FindNestedList | undefined,
): Resolver<unknown, Readonly<Record<string, unknown>>> {
  const { adapter, link } = parts;
  const { type } = adapter.connection!;
  const identity = identitySelection(link.schema, adapter.nodeType);
  return async (source, args, context, info): Promise<ConnectionSource | null> => {
    const selected = selectionContext(info);
    const places = recordPlaces(adapter.connection!, selected, info.fieldNodes);
    const nested = findList?.(source, info, places);
    const reader = connectionReader(
      { ...parts, identity },
      { args, context, info, places, nested },
    );
    const at = responsePath(info.path);
    const orNull = (error: unknown) => {
      context.surplusErrors.push(...errorsAt(at, surplusOf(error)));
      return nullForNullList(error);
    };
    // Who wants nothing but the total needs no page.
    const wanted = namesBelow(type, selected, info.fieldNodes);
    if (wanted.length > 0 && wanted.every((field) => field === 'totalCount')) {
      const total = await reader.total().catch(orNull);
      return total === null ? null : { edges: [], pageInfo: NOWHERE, total: async () => total };
    }
    const slice = await reader.read().catch(orNull);
    if (!slice) return null;
    context.surplusErrors.push(...errorsAt(at, slice.beside));
    const edges = slice.edges.map(({ record, position }) => ({
      record,
      places,
      cursor: reader.cursorOf(position),
    }));
    return {
      edges,
      pageInfo: {
        hasNextPage: slice.hasNextPage,
        hasPreviousPage: slice.hasPreviousPage,
        startCursor: edges[0]?.cursor ?? null,
        endCursor: edges.at(-1)?.cursor ?? null,
      },
      total: reader.total,
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
