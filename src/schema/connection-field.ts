import type { GraphQLError, GraphQLFieldResolver, GraphQLResolveInfo } from 'graphql';
import type { Slice } from '../paging/connection/connection-slice.ts';
import { connectionReader, type ConnectionParts } from './connection-reader.ts';
import {
  createConnectionSource,
  type ConnectionSource,
  type EdgeSource,
} from './connection-source.ts';
import type { PageInfo } from './generated/served.ts';
import { identitySelection } from './asking/identity-selection.ts';
import type { FindNestedList } from './nested-list.ts';
import { nullForNullList, surplusOf } from './asking/page-fetcher.ts';
import type { Adapter } from './derivation/adapter.ts';
import { checked } from './read-field.ts';
import { type ResponsePath, responsePath } from './asking/response-path.ts';
import { namesBelow, recordPlaces, selectionContext } from './asking/response-places.ts';
import type { ServingContext } from './serving-context.ts';
import { errorsAt, valueAt } from './asking/upstream-value.ts';

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
    const streamed = streamedAt(info.path, context);
    return await (streamed ? (streamed.source ??= open()) : open());

    async function open(): Promise<ConnectionSource | null> {
      const selected = selectionContext(info);
      const places = recordPlaces(adapter.connection!, selected, info.fieldNodes);
      const nested = findList?.(source, info, places);
      const { read, total, cursorOf } = connectionReader(
        { ...parts, identity },
        { args, context, info, places, nested },
      );
      // Who wants nothing but the total needs no page.
      const wanted = namesBelow(type, selected, info.fieldNodes);
      const isTotal = wanted.length > 0 && wanted.every((field) => field === 'totalCount');
      const slice = isTotal ? nothing() : read();
      const connection = createConnectionSource({ slice, places, cursorOf, total });
      try {
        if (isTotal) await total();
        await (streamed ? connection.begin() : connection.finish());
        addBeside(connection, context, info.path);
        return connection;
      } catch (error) {
        context.surplusErrors.push(...errorsAt(responsePath(info.path), surplusOf(error)));
        return nullForNullList(error);
      }
    }
  };
}

/** Resolves `edges` of a connection. */
export const resolveEdges: Resolver<ConnectionSource> = (source, _args, context, { path }) =>
  edgesOf(source, context, path);

/** Resolves `pageInfo` of a connection. */
export const resolvePageInfo: Resolver<ConnectionSource> = async (
  source,
  _args,
  context,
  { path },
): Promise<PageInfo> => {
  const pageInfo = await source.pageInfo();
  addBeside(source, context, path.prev!);
  return pageInfo;
};

/** Resolves `totalCount` of a connection. */
export const resolveTotal: Resolver<ConnectionSource> = ({ total }, _args, context, { path }) =>
  total().catch((error: unknown) => {
    context.surplusErrors.push(...errorsAt(responsePath(path), surplusOf(error)));
    return nullForNullList(error);
  });

/** Resolves `nodes` of a connection. */
export function resolveNodes(adapter: Adapter): Resolver<ConnectionSource> {
  return async (source, _args, context, { path, schema }) => {
    const at = responsePath(path);
    const place = String(at.at(-1));
    const edges = await edgesOf(source, context, path);
    return edges.map((edge, index) =>
      checked(
        recordAt(edge, place, [...at, index], context.surplusErrors),
        adapter.recordType,
        schema,
      ),
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

/** All of them, or the part that is to be given now. */
async function edgesOf(
  source: ConnectionSource,
  context: ServingContext,
  path: GraphQLResolveInfo['path'],
): Promise<readonly EdgeSource[]> {
  const stream = streamedAt(path.prev!, context)?.lists.get(String(path.key));
  const edges = stream ? (await stream.part(source.parts)).records : await source.edges();
  addBeside(source, context, path.prev!);
  return edges;
}

/** Errors that stand at no record stand at the connection. */
function addBeside(
  source: ConnectionSource,
  { surplusErrors }: ServingContext,
  path: GraphQLResolveInfo['path'],
): void {
  surplusErrors.push(...errorsAt(responsePath(path), source.takeBeside()));
}

function streamedAt({ prev, key }: GraphQLResolveInfo['path'], { streams }: ServingContext) {
  return prev ? undefined : streams?.connections.get(String(key));
}

async function* nothing(): Slice<never> {
  yield* [];
  return { hasNextPage: false, hasPreviousPage: false };
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
