import type { CreateProxyingResolverFn, SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import type { ExecutionRequest, Executor, IResolvers } from '@graphql-tools/utils';
import { wrapSchema } from '@graphql-tools/wrap';
import {
  assertValidSchema,
  getNamedType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  OperationTypeNode,
  type ExecutionResult,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { systemClock } from '../clock.ts';
import { resolveAll } from './all-field.ts';
import type { UpstreamLink } from './asking/ask-upstream.ts';
import {
  resolveConnection,
  resolveEdges,
  resolveNode,
  resolveNodes,
  resolvePageInfo,
  resolveTotal,
} from './connection-field.ts';
import { createDrains, type DrainParts, type Drains } from './drains.ts';
import { derivedTypes } from './derivation/derived-types.ts';
import { forwardField, refuseMutation, type AllowedMutations } from './forward-field.ts';
import { findNestedList } from './nested-list.ts';
import { INCREMENTAL } from './incremental-directives.ts';
import type { Adapter, NestedAdapter } from './derivation/adapter.ts';
import { planAdapters, type ListReport } from './derivation/plan-adapters.ts';
import { createPauses, type Pause } from './pauses.ts';
import { readField } from './read-field.ts';
import { createRequestLoader, type RequestLoader } from './asking/request-loader.ts';
import { createRides } from './asking/ride-first-page.ts';
import { servedNames } from './asking/served-names.ts';
import type { ServingContext } from './serving-context.ts';

export interface ServedSchema {
  readonly schema: GraphQLSchema;
  /** Of the lists of the root. */
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  /** What became of every list, and why. */
  readonly reports: readonly ListReport[];
  /** For the log at start-up: what was not derived, and why. */
  readonly warnings: readonly string[];
  /** The requests of one operation, for its context. */
  readonly createRequests: (context: { readonly signal: AbortSignal }) => RequestLoader;
}

export interface ServedSchemaParts {
  /** The upstream's schema, as it is. */
  snapshot: GraphQLSchema;
  /** Sends an operation to the upstream. */
  execute: (request: ExecutionRequest) => Promise<ExecutionResult>;
  mutations: AllowedMutations;
  /** The largest `first` of a connection. */
  connectionMax: number;
  /** Undefined where nothing is asked. */
  drains?: DrainParts;
  /** Records that one operation may drain; only told in descriptions here. */
  drainMaxItems: number;
  /** What adapters.json says, as it was read; undefined without one. */
  overrides?: unknown;
}

/**
 * The schema that callers see: the upstream's own, wrapped, and what is derived from its lists.
 *
 * What is derived of it is decided in `derivation`. A query goes from its resolver (forward-field, all-field,
 * connection-field) by `asking`, which writes the request, and the operation's request-loader to `link.execute`,
 * and from there to the upstream stage. A mutation goes to `link.execute` at once. What is answered in parts
 * goes through `streaming` first.
 */
export function createServedSchema(parts: ServedSchemaParts): ServedSchema {
  const { snapshot, execute, mutations, connectionMax } = parts;
  const { transforms, toUpstream, fromUpstream } = servedNames(snapshot);
  const subschema: SubschemaConfig = {
    schema: snapshot,
    executor: execute as Executor,
    transforms,
    // Each root field of an operation is a request of its own: one that fails takes no other with it.
    createProxyingResolver: (({ operation = OperationTypeNode.QUERY, fieldName = '' }) =>
      operation === OperationTypeNode.MUTATION && !isAllowed(fieldName, mutations)
        ? refuseMutation(fieldName)
        : forwardField(() => link, operation)) as CreateProxyingResolverFn,
  };
  const wrapped = wrapSchema(subschema);
  const { adapters, nested, warnings, reports } = planAdapters(wrapped, parts.overrides);
  const link: UpstreamLink = {
    schema: wrapped,
    toUpstream,
    execute: async (request) => {
      const isMutation = request.operationType === OperationTypeNode.MUTATION;
      if (isMutation) drains.separate();
      try {
        return fromUpstream(await execute(request));
      } finally {
        if (isMutation) drains.separate();
      }
    },
    writeRides: createRides({
      upstream: wrapped,
      served: () => schema,
      adapters: nested,
      connectionMax,
    }),
  };
  const drains = createDrains(link, parts.drains ?? NO_DRAINS);
  const schema: GraphQLSchema = stitchSchemas({
    subschemas: [subschema],
    typeDefs: [
      derivedTypes([...adapters, ...nested], wrapped, parts),
      ...(adapters.length + nested.length > 0 ? [INCREMENTAL] : []),
    ],
    resolvers: [
      upstreamResolvers(wrapped),
      derivedResolvers([...adapters, ...nested], link, drains, connectionMax),
    ],
    assumeValidSDL: true,
  });
  assertValidSchema(schema);
  return {
    schema,
    adapters,
    nested,
    reports,
    warnings: [
      ...warnings,
      ...unknownMutations(snapshot, mutations),
      ...waysBackToTheRoot(wrapped),
    ],
    createRequests: (context) => createRequestLoader(link.execute, context),
  };
}

const NO_DRAINS: DrainParts = {
  drainConcurrency: 1,
  maxDrains: 1,
  indexMaxIds: 0,
  clock: systemClock,
  tokenSet: () => undefined,
};

function isAllowed(field: string, allowed: AllowedMutations): boolean {
  return allowed === 'all' || (allowed !== 'off' && allowed.includes(field));
}

function unknownMutations(snapshot: GraphQLSchema, allowed: AllowedMutations): string[] {
  if (typeof allowed === 'string') return [];
  const there = snapshot.getMutationType()?.getFields() ?? {};
  return allowed
    .filter((name) => !there[name])
    .map((name) => `MUTATIONS names ${name}, but the schema has no such mutation.`);
}

/** What is derived at the root stands there alone, and the upstream does not know it. */
function waysBackToTheRoot(wrapped: GraphQLSchema): string[] {
  const root = wrapped.getQueryType();
  return Object.values(wrapped.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .flatMap((type) =>
      Object.values(type.getFields())
        .filter((field) => getNamedType(field.type) === root)
        .map((field) => `Below ${type.name}.${field.name} the derived fields do not work.`),
    );
}

/** Every field below the root reads what the upstream gave, checked against its type. */
function upstreamResolvers(wrapped: GraphQLSchema): IResolvers {
  const roots: unknown[] = [wrapped.getQueryType(), wrapped.getMutationType()];
  const types = Object.values(wrapped.getTypeMap()).filter(
    (type) => isObjectType(type) && !isIntrospectionType(type) && !roots.includes(type),
  ) as GraphQLObjectType[];
  return Object.fromEntries(
    types.map((type) => [
      type.name,
      Object.fromEntries(Object.keys(type.getFields()).map((field) => [field, readField])),
    ]),
  );
}

type Resolver = GraphQLFieldResolver<unknown, ServingContext>;

function derivedResolvers(
  adapters: readonly (Adapter | NestedAdapter)[],
  link: UpstreamLink,
  drains: Drains,
  connectionMax: number,
): IResolvers {
  const types: Record<string, Record<string, GraphQLFieldResolver<never, ServingContext>>> = {};
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
