import type { SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import { wrapSchema } from '@graphql-tools/wrap';
import { assertValidSchema, parse, type DocumentNode, type GraphQLSchema } from 'graphql';
import type { AllowedMutations } from './allowed-mutations.ts';
import type { Adapter, NestedAdapter } from './derivation/adapter.ts';
import { derivedTypes } from './derivation/derived-types.ts';
import type { Entity, EntityReport } from './derivation/entity.ts';
import { findLists } from './derivation/find-lists.ts';
import { planAdapters, type AdapterPlan, type ListReport } from './derivation/plan-adapters.ts';
import { planEntities } from './derivation/plan-entities.ts';
import { RELAY_PAGE_INFO, rootNames } from './derivation/root-names.ts';
import { entityTypes } from './entities/entity-types.ts';
import { subgraphSdl } from './entities/subgraph-sdl.ts';
import { INCREMENTAL } from './incremental-directives.ts';
import { servedNames } from './served-names.ts';
import { startWarnings } from './start-warnings.ts';

export interface ServedSchema {
  readonly schema: GraphQLSchema;
  /** The upstream's schema under served names: what of it is the service's own. */
  readonly upstream: GraphQLSchema;
  /** The upstream's schema as it is. */
  readonly snapshot: GraphQLSchema;
  /** Puts a document back into the upstream's names. */
  readonly toUpstream: (document: DocumentNode) => DocumentNode;
  /** The upstream's name of a served type. */
  readonly upstreamType: (servedType: string) => string;
  /** The served name of one of the upstream's mutations. */
  readonly servedMutation: (field: string) => string;
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
}

export interface ServedSchemaParts {
  /** The upstream's schema, as it is. */
  snapshot: GraphQLSchema;
  /** Only looked at for warnings: which mutations callers may use. */
  mutations: AllowedMutations;
  /** The largest `first` of a connection; only mentioned in descriptions here. */
  connectionMax: number;
  /** Records that one operation may drain; only mentioned in descriptions here. */
  drainMaxItems: number;
  /** What adapters.json says, as it was read; undefined without one. */
  overrides?: unknown;
  /** Put before all names that could clash in a supergraph; empty or left out: nothing is. */
  prefix?: string | undefined;
}

/**
 * The schema that callers see: the upstream's own, wrapped, and what is derived from its lists, as decided in
 * `derivation`. Nothing is resolved through it: an operation is compiled (`plans`) and answered as bytes.
 */
export function createServedSchema(parts: ServedSchemaParts): ServedSchema {
  const { snapshot, mutations } = parts;
  const names = rootNames(snapshot, parts.prefix ?? '');
  const wrap = (servesConnections: boolean) => {
    const { transforms, ...served } = servedNames(snapshot, names, servesConnections);
    const subschema: SubschemaConfig = { schema: snapshot, transforms };
    const upstream = wrapSchema(subschema);
    return { ...served, subschema, upstream, plan: planAdapters(upstream, names, parts.overrides) };
  };
  // What is derived depends on no name that changes here, so that the second plan has no connections either.
  const withConnections = isPagedSomewhere(snapshot) ? wrap(true) : undefined;
  const { plan, subschema, upstream, toUpstream, upstreamName } =
    withConnections && hasConnections(withConnections.plan) ? withConnections : wrap(false);
  const { adapters, nested } = plan;
  const root = snapshot.getQueryType()!.name;
  const found = planEntities(upstream, { adapters, names, overrides: plan.types });
  const { entities } = found;
  const schema = stitchSchemas({
    subschemas: [subschema],
    typeDefs: [
      rootsOf(snapshot),
      derivedTypes([...adapters, ...nested], upstream, names, parts),
      entityTypes(entities, root),
      ...(adapters.length + nested.length > 0 ? [INCREMENTAL] : []),
    ],
    assumeValidSDL: true,
  });
  schema.description = snapshot.description;
  assertValidSchema(schema);
  return {
    schema,
    upstream,
    snapshot,
    toUpstream,
    upstreamType: (name) => upstreamName(name) ?? name,
    servedMutation: (field) => names.field('Mutation', field),
    adapters,
    nested,
    entities,
    subgraphSdl: once(() =>
      subgraphSdl(schema, { entities, pageInfo: names.type(RELAY_PAGE_INFO) }),
    ),
    reports: [...plan.reports, ...found.reports],
    warnings: [
      ...plan.warnings,
      ...found.warnings,
      ...startWarnings(snapshot, upstream, mutations),
    ],
  };
}

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

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
