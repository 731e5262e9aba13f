import type { CreateProxyingResolverFn, SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import type { ExecutionRequest, Executor, IResolvers } from '@graphql-tools/utils';
import { wrapSchema } from '@graphql-tools/wrap';
import {
  assertValidSchema,
  isIntrospectionType,
  isObjectType,
  OperationTypeNode,
  parse,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { systemClock } from '../clock.ts';
import { createAccounts } from '../paging/price/accounts.ts';
import { createPageMeter, type PageMeter, type Payer } from '../paging/price/page-meter.ts';
import { pagePrice } from './asking/page-price.ts';
import type { UpstreamLink } from './asking/upstream-link.ts';
import { createDrains, type DrainParts } from './drains.ts';
import { derivedTypes } from './derivation/derived-types.ts';
import type { Entity, EntityReport } from './derivation/entity.ts';
import { findLists } from './derivation/find-lists.ts';
import { planEntities } from './derivation/plan-entities.ts';
import { RELAY_PAGE_INFO, rootNames } from './derivation/root-names.ts';
import { derivedResolvers } from './derived-resolvers.ts';
import { entityResolvers } from './entities/entity-resolvers.ts';
import { entityTypes } from './entities/entity-types.ts';
import { createRecordLoader, type RecordLoader } from './entities/record-loader.ts';
import { subgraphSdl } from './entities/subgraph-sdl.ts';
import { forwardField, refuseMutation, type AllowedMutations } from './forward-field.ts';
import { INCREMENTAL } from './incremental-directives.ts';
import type { Adapter, NestedAdapter } from './derivation/adapter.ts';
import { planAdapters, type AdapterPlan, type ListReport } from './derivation/plan-adapters.ts';
import { readField } from './read-field.ts';
import { createRequestLoader, type RequestLoader } from './asking/request-loader.ts';
import { unwatched, type ReadingWatch } from './asking/reading-watch.ts';
import { createRides } from './asking/ride-first-page.ts';
import { servedNames } from './served-names.ts';
import { startWarnings } from './start-warnings.ts';

export interface ServedSchema {
  readonly schema: GraphQLSchema;
  /** Of the lists of the root. */
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  /** The types whose records can be referred to. */
  readonly entities: readonly Entity[];
  /** What became of every list, and of every type with an id, and why. */
  readonly reports: readonly (ListReport | EntityReport)[];
  /** For the log at start-up: what was not derived, and why. */
  readonly warnings: readonly string[];
  /** The SDL that a supergraph is composed of. */
  readonly subgraphSdl: () => string;
  /** Counts what one operation costs, and charges it to the account of its caller. */
  readonly createMeter: (payer: Payer) => PageMeter;
  /** What one operation asks the upstream, for its context. */
  readonly createLoaders: (context: {
    readonly signal: AbortSignal;
    readonly pages: PageMeter;
    readonly cause?: unknown;
  }) => {
    readonly requests: RequestLoader;
    readonly records: RecordLoader;
  };
  /** Drains that run now, and that wait for their turn. */
  readonly drainLoad: () => { readonly running: number; readonly waiting: number };
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
  watch?: ReadingWatch;
  /** Records that one operation may drain; only told in descriptions here. */
  drainMaxItems: number;
  /** What adapters.json says, as it was read; undefined without one. */
  overrides?: unknown;
  /** Put before all names that could clash in a supergraph; empty or left out: nothing is. */
  prefix?: string | undefined;
}

/**
 * The schema that callers see: the upstream's own, wrapped, and what is derived from its lists.
 *
 * What is derived of it is decided in `derivation`. A query goes from its resolver (forward-field, all-field,
 * connection-field, and `entities` for records by their ids) by `asking`, which writes the request, and the operation's request-loader to `link.execute`,
 * and from there to the upstream stage. A mutation goes to `link.execute` at once. What is answered in parts
 * goes through `streaming` first.
 */
export function createServedSchema(parts: ServedSchemaParts): ServedSchema {
  const { snapshot, execute, mutations, connectionMax, watch = unwatched } = parts;
  const names = rootNames(snapshot, parts.prefix ?? '');
  const wrap = (servesConnections: boolean) => {
    const { transforms, ...served } = servedNames(snapshot, names, servesConnections);
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
    return { ...served, subschema, wrapped, plan: planAdapters(wrapped, names, parts.overrides) };
  };
  // What is derived depends on no name that changes here, so that the second plan has no connections either.
  const withConnections = isPagedSomewhere(snapshot) ? wrap(true) : undefined;
  const { plan, subschema, wrapped, toUpstream, fromUpstream } =
    withConnections && hasConnections(withConnections.plan) ? withConnections : wrap(false);
  const { adapters, nested } = plan;
  const root = snapshot.getQueryType()!.name;
  const found = planEntities(wrapped, { adapters, names, overrides: plan.types });
  const { entities } = found;
  const link: UpstreamLink = {
    schema: wrapped,
    toUpstream,
    price: pagePrice(snapshot),
    watch,
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
  const limits = parts.drains ?? NO_DRAINS;
  const drains = createDrains(link, limits);
  const accounts = createAccounts(limits.pagesPerMinute, limits.clock);
  const schema: GraphQLSchema = stitchSchemas({
    subschemas: [subschema],
    typeDefs: [
      rootsOf(snapshot),
      derivedTypes([...adapters, ...nested], wrapped, names, parts),
      entityTypes(entities, root),
      ...(adapters.length + nested.length > 0 ? [INCREMENTAL] : []),
    ],
    resolvers: [
      upstreamResolvers(wrapped),
      derivedResolvers([...adapters, ...nested], link, drains, connectionMax),
      entityResolvers({ entities, root, link, drains, sdl: () => sdl() }),
    ],
    assumeValidSDL: true,
  });
  const sdl = once(() => subgraphSdl(schema, { entities, pageInfo: names.type(RELAY_PAGE_INFO) }));
  schema.description = snapshot.description;
  assertValidSchema(schema);
  return {
    schema,
    adapters,
    nested,
    entities,
    subgraphSdl: sdl,
    reports: [...plan.reports, ...found.reports],
    warnings: [...plan.warnings, ...found.warnings, ...startWarnings(snapshot, wrapped, mutations)],
    createMeter: ({ name, mayDrain }) => createPageMeter(accounts.of(name), mayDrain),
    createLoaders: (context) => {
      const requests = createRequestLoader(link, context);
      return { requests, records: createRecordLoader({ ...context, requests }) };
    },
    drainLoad: () => drains.load,
  };
}

const NO_DRAINS: DrainParts = {
  drainConcurrency: 1,
  maxDrains: 1,
  indexMaxIds: 0,
  drainMaxItems: 0,
  pagesPerMinute: 0,
  clock: systemClock,
  tokenSet: () => undefined,
};

function isPagedSomewhere(snapshot: GraphQLSchema): boolean {
  return findLists(snapshot).some(({ verdict }) => 'paged' in verdict);
}

function hasConnections({ adapters, nested }: AdapterPlan): boolean {
  return [...adapters, ...nested].some(({ connection }) => connection !== undefined);
}

/** Without it stitching would call them `Query` and `Mutation`. */
function rootsOf(schema: GraphQLSchema): DocumentNode {
  const mutation = schema.getMutationType();
  return parse(
    `schema { query: ${schema.getQueryType()!.name} ${mutation ? `mutation: ${mutation.name}` : ''} }`,
  );
}

function isAllowed(field: string, allowed: AllowedMutations): boolean {
  return allowed === 'all' || (allowed !== 'off' && allowed.includes(field));
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

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
