import type { SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import type { Executor, IResolvers } from '@graphql-tools/utils';
import { FilterRootFields, RenameTypes, wrapSchema } from '@graphql-tools/wrap';
import type { GraphQLSchema } from 'graphql';
import { resolveAll } from './all-field.ts';
import { resolveConnection, resolveNode, resolveNodes } from './connection-field.ts';
import { derivedTypes } from './derived-types.ts';
import { guardMutations, type AllowedMutations } from './guard-mutations.ts';
import { planAdapters, RELAY_PAGE_INFO, type Adapter } from './plan-adapters.ts';

export interface ServedSchema {
  readonly schema: GraphQLSchema;
  readonly adapters: readonly Adapter[];
  /** For the log at start-up: what was not derived, and why. */
  readonly warnings: readonly string[];
}

export interface ServedSchemaParts {
  /** The upstream's schema, as it is. */
  snapshot: GraphQLSchema;
  /** Sends an operation to the upstream. */
  execute: Executor;
  mutations: AllowedMutations;
  /** The largest `first` of a connection. */
  connectionMax: number;
  /** Records that one operation may drain; only told in descriptions here. */
  drainMaxItems: number;
}

/** The schema that callers see: the upstream's own, wrapped, and what is derived from its lists. */
export function createServedSchema(parts: ServedSchemaParts): ServedSchema {
  const { snapshot, execute, mutations, connectionMax } = parts;
  const subschema: SubschemaConfig = {
    schema: snapshot,
    executor: execute,
    // One request for each root field: a field that fails as a whole never takes another with it.
    batch: false,
    transforms: [
      new RenameTypes(servedTypeName(snapshot)),
      // The published interface has no subscriptions, and nothing here could carry them.
      new FilterRootFields((operation) => operation !== 'Subscription'),
    ],
    createProxyingResolver: guardMutations(mutations),
  };
  const wrapped = wrapSchema(subschema);
  const { adapters, warnings } = planAdapters(wrapped);
  const schema = stitchSchemas({
    subschemas: [subschema],
    typeDefs: derivedTypes(adapters, wrapped, parts),
    resolvers: derivedResolvers(adapters, subschema, wrapped, connectionMax),
    assumeValidSDL: true,
  });
  return { schema, adapters, warnings };
}

/** The name `PageInfo` is Relay's, and shared across a supergraph; an upstream type of that name gives way. */
function servedTypeName(snapshot: GraphQLSchema): (name: string) => string {
  let instead = `Upstream${RELAY_PAGE_INFO}`;
  while (snapshot.getType(instead)) instead += '_';
  return (name) => (name === RELAY_PAGE_INFO ? instead : name);
}

function derivedResolvers(
  adapters: readonly Adapter[],
  subschema: SubschemaConfig,
  wrapped: GraphQLSchema,
  connectionMax: number,
): IResolvers {
  const query: IResolvers = {};
  const types: IResolvers = {};
  for (const adapter of adapters) {
    const { all, connection } = adapter;
    if (all) query[all.field] = resolveAll(adapter, subschema, wrapped);
    if (!connection) continue;
    query[connection.field] = resolveConnection(adapter, subschema, wrapped, connectionMax);
    types[connection.type] = { nodes: resolveNodes(adapter, subschema) };
    types[connection.edge] = { node: resolveNode(adapter, subschema) };
  }
  return { [wrapped.getQueryType()?.name ?? 'Query']: query, ...types };
}
