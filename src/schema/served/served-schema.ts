import type { SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import type { Executor } from '@graphql-tools/utils';
import { wrapSchema } from '@graphql-tools/wrap';
import { parse, type DocumentNode, type GraphQLSchema, assertValidSchema } from 'graphql';
import { planAdapters } from '../derivation/adapters.ts';
import { byIdFields } from '../derivation/by-id.ts';
import { planEntities } from '../derivation/entities.ts';
import { findLists } from '../derivation/lists.ts';
import { readOverrides, scopesByPlace } from '../derivation/overrides.ts';
import type { Adapter, DerivedField, Entity, Report } from '../derived.ts';
import { derivedFields, derivedSdl } from '../derived-fields.ts';
import { fieldScopes, type ScopesByPlace } from '../field-scopes.ts';
import { INCREMENTAL } from '../incremental-directives.ts';
import { RELAY_PAGE_INFO, servedNames } from '../names.ts';
import { readSnapshot } from '../snapshot.ts';
import { subgraphSdl } from './subgraph-sdl.ts';

export interface ServedSchema {
  readonly schema: GraphQLSchema;
  /**
   * The upstream's schema under served names, without anything derived. Where graphql-js executes an operation over it,
   * the service answers each root field, through the executor.
   */
  readonly upstream: GraphQLSchema;
  /** The upstream's schema, unchanged. */
  readonly snapshot: GraphQLSchema;
  /** Renames the types and fields of a document to the upstream's names. */
  readonly toUpstream: (document: DocumentNode) => DocumentNode;
  /** The upstream's name of a served type. */
  readonly upstreamType: (servedType: string) => string;
  /** The served name of Relay's `PageInfo`. */
  readonly pageInfo: string;
  /** The served name of one of the upstream's mutations. */
  readonly servedMutation: (field: string) => string;
  readonly adapters: readonly Adapter[];
  /** The types whose records other subgraphs can refer to. */
  readonly entities: readonly Entity[];
  /** All fields that the gateway adds to the service's schema. */
  readonly derived: readonly DerivedField[];
  /** The scopes that fields need. */
  readonly scopes: ScopesByPlace;
  /** The scopes that adapters.json has, by place. `withAdditions` checks the places: a company may add some. */
  readonly writtenScopes: ReadonlyMap<string, string>;
  /** What was derived from every list and every type with an id, and why. */
  readonly reports: readonly Report[];
  /** Warnings for the operator, for the log at the start. */
  readonly warnings: readonly string[];
  /** Writes the SDL from which a supergraph is composed. @param offered what callers see; default: this schema */
  readonly subgraphSdl: (offered?: Pick<ServedSchema, 'schema' | 'scopes'>) => string;
}

/** The mutations that callers may use: none, all, or these fields of the upstream. */
export type AllowedMutations = 'off' | 'all' | readonly string[];

/** The settings on which the served schema depends. */
export interface SnapshotSettings {
  /** The file of the snapshot, for messages. */
  readonly schemaPath: string;
  /** Put before all names that could clash in a supergraph. */
  readonly schemaPrefix: string | undefined;
}

interface SnapshotParts {
  /** The parsed adapters.json; undefined without one. */
  readonly overrides?: unknown;
  /** Sends requests to the service. Undefined: no operation is ever executed over the schema. */
  readonly executor?: Executor | undefined;
}

/**
 * Creates the schema that callers see for a snapshot: the upstream's schema under its served names (`names`), with the
 * fields and types that are derived from its lists and records (decided in `derivation`, written as SDL in
 * `derived-fields.ts`). Nothing changes it afterwards.
 *
 * No resolver runs on it: an operation is compiled into a plan and answered as texts (`engine`).
 *
 * @param sdl the upstream's schema
 * @throws OperatorMistake
 */
export function serveSnapshot(
  sdl: string,
  settings: SnapshotSettings,
  { overrides, executor = neverExecuted }: SnapshotParts = {},
): ServedSchema {
  const { schema: snapshot, warnings } = readSnapshot(sdl, settings.schemaPath);
  const servesConnections = findLists(snapshot).some(({ verdict }) => typeof verdict !== 'string');
  const names = servedNames(snapshot, settings.schemaPrefix ?? '', servesConnections);
  const { transforms, toUpstream, upstreamType } = names;
  const subschema: SubschemaConfig = { schema: snapshot, transforms, executor: neverExecuted };
  const upstream = wrapSchema({ ...subschema, executor });
  const adapted = readOverrides(overrides);
  const byId = byIdFields(upstream, adapted.types);
  const plan = planAdapters(upstream, { names, overrides: adapted, byId });
  const { adapters } = plan;
  const root = snapshot.getQueryType()!.name;
  const planned = planEntities(upstream, { adapters, names, byId });
  const { entities } = planned;
  const derived = derivedFields({ root, adapters, entities });
  const writtenScopes = scopesByPlace(adapted);
  const scopes = fieldScopes(writtenScopes, upstream, derived);
  const pageInfo = names.type(RELAY_PAGE_INFO);
  const schema = stitchSchemas({
    subschemas: [subschema],
    typeDefs: [
      rootsOf(snapshot),
      parse(derivedSdl(derived, { schema: upstream, pageInfo })),
      ...(adapters.length > 0 ? [INCREMENTAL] : []),
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
    upstreamType,
    servedMutation: names.derived,
    pageInfo,
    adapters,
    entities,
    derived,
    scopes,
    writtenScopes,
    subgraphSdl: (offered = { schema, scopes }) => subgraphSdl(offered, { entities, pageInfo }),
    reports: [...plan.reports, ...planned.reports],
    warnings: [...warnings, ...plan.warnings, ...planned.warnings],
  };
}

/**
 * The served schema must not lead to the service: graphql-js would answer a caller without its budgets and without
 * derived fields.
 */
function neverExecuted(): never {
  throw new Error('Operations of this schema are answered by their plans, not by its resolvers.');
}

/** Without these, stitching would rename the root types to `Query` and `Mutation`. */
export function rootsOf(schema: GraphQLSchema): DocumentNode {
  const mutation = schema.getMutationType();
  return parse(
    `schema { query: ${schema.getQueryType()!.name} ${mutation ? `mutation: ${mutation.name}` : ''} }`,
  );
}
