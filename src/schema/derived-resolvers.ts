import type { IResolvers } from '@graphql-tools/utils';
import type { GraphQLFieldResolver } from 'graphql';
import { resolveAll } from './all-field.ts';
import type { UpstreamLink } from './asking/upstream-link.ts';
import {
  resolveConnection,
  resolveEdges,
  resolveNode,
  resolveNodes,
  resolvePageInfo,
  resolveTotal,
} from './connection-field.ts';
import type { Adapter, NestedAdapter } from './derivation/adapter.ts';
import type { Drains } from './drains.ts';
import { findNestedList } from './nested-list.ts';
import { createPauses, type Pause } from './pauses.ts';
import type { ServingContext } from './serving-context.ts';

/** Resolves what is derived of lists. */
export function derivedResolvers(
  adapters: readonly (Adapter | NestedAdapter)[],
  link: UpstreamLink,
  drains: Drains,
  connectionMax: number,
): IResolvers {
  // A type may be called like something that every object has.
  const types: Record<
    string,
    Record<string, GraphQLFieldResolver<never, ServingContext>>
  > = Object.create(null);
  const pause = createPauses();
  for (const adapter of adapters) {
    const { parent, all, connection } = adapter;
    const findList = 'reach' in adapter ? findNestedList(adapter) : undefined;
    const paced = (resolve: Resolver) => (findList ? afterPause(pause, resolve) : resolve);
    const fields = (types[parent] ??= {});
    if (all) fields[all.field] = paced(resolveAll(adapter, link, drains, findList));
    if (!connection) continue;
    const parts = { adapter, link, drains, max: connectionMax };
    fields[connection.field] = paced(resolveConnection(parts, findList));
    types[connection.type] = {
      edges: resolveEdges,
      nodes: resolveNodes(adapter),
      pageInfo: resolvePageInfo,
      totalCount: resolveTotal,
    };
    types[connection.edge] = { node: resolveNode(adapter) };
  }
  return types as IResolvers;
}

/** Of a nested list there are as many as there are parents. */
function afterPause(pause: Pause, resolve: Resolver): Resolver {
  return async (source, args, context, info) => {
    await pause(context);
    return resolve(source, args, context, info);
  };
}

type Resolver = GraphQLFieldResolver<unknown, ServingContext>;
