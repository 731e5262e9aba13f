import type { Executor } from '@graphql-tools/utils';
import { wrapSchema } from '@graphql-tools/wrap';
import { assertValidSchema, concatAST, extendSchema, parse, type GraphQLSchema } from 'graphql';
import { deriveLists } from '../derivation/lists.ts';
import { checkOverrides, readOverrides, type Overrides } from '../derivation/overrides.ts';
import { byIdFields, deriveEntities } from '../derivation/records.ts';
import {
  isPage,
  objectTypesIn,
  type Adapter,
  type DerivedField,
  type Entity,
  type Notes,
} from '../derived.ts';
import { derivedFields, derivedSdl } from '../derived-fields.ts';
import { INCREMENTAL } from '../incremental-directives.ts';
import { servedNames, type ServedNames } from '../names.ts';
import { readSnapshot } from '../snapshot.ts';

export interface ServedSchema extends ServedNames, Notes {
  readonly schema: GraphQLSchema;
  /**
   * The upstream's schema under served names, without anything derived. Where graphql-js executes an operation over it,
   * the service answers each root field, through the executor.
   */
  readonly upstream: GraphQLSchema;
  /** The upstream's schema, unchanged. */
  readonly snapshot: GraphQLSchema;
  readonly adapters: readonly Adapter[];
  /** The types whose records other subgraphs can refer to. */
  readonly entities: readonly Entity[];
  /** All fields that the gateway adds to the service's schema. */
  readonly derived: readonly DerivedField[];
  /** What adapters.json says. The places of its scopes are not checked: a company may add them. */
  readonly overrides: Overrides;
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

/**
 * Creates the schema that callers see for a snapshot: the upstream's schema under its served names (`names`), with the
 * fields and types that are derived from its lists and records (decided in `derivation`, written as SDL in
 * `derived-fields.ts`). Nothing changes it afterwards.
 *
 * No resolver runs on it: an operation is compiled into a plan and answered as texts (`engine`).
 *
 * @param sdl the upstream's schema
 * @param overrides the parsed adapters.json; undefined without one
 * @param executor sends requests to the service. Default: no operation is ever executed over the wrapped schema
 * @throws OperatorMistake
 */
export function serveSnapshot(
  sdl: string,
  settings: SnapshotSettings,
  overrides?: unknown,
  executor: Executor = neverExecuted,
): ServedSchema {
  const { schema: snapshot, warnings } = readSnapshot(sdl, settings.schemaPath);
  const hasPages = objectTypesIn(snapshot).some(isPage);
  const names = servedNames(snapshot, settings.schemaPrefix ?? '', hasPages);
  const { transforms, pageInfo } = names;
  const upstream = wrapSchema({ schema: snapshot, transforms, executor });

  const adapted = readOverrides(overrides);
  const byId = byIdFields(upstream, adapted.types);
  const notes: Notes = { reports: [], warnings: [...warnings] };
  const adapters = deriveLists(upstream, { overrides: adapted.fields, byId, names }, notes);
  checkOverrides(adapted, upstream, notes.reports, byId);
  const entities = deriveEntities(upstream, { adapters, names, byId }, notes);
  const derived = derivedFields(upstream, adapters, entities);

  const added = [
    parse(derivedSdl(derived, pageInfo)),
    ...(adapters.length > 0 ? [INCREMENTAL] : []),
  ];
  const wrapped = wrapSchema({ schema: snapshot, transforms, executor: neverExecuted });
  const schema = extendSchema(wrapped, concatAST(added), { assumeValidSDL: true });
  schema.description = snapshot.description;
  assertValidSchema(schema);
  return {
    ...names,
    ...notes,
    schema,
    upstream,
    snapshot,
    adapters,
    entities,
    derived,
    overrides: adapted,
  };
}

/**
 * The served schema must not lead to the service: graphql-js would answer a caller without its budgets and without
 * derived fields.
 */
function neverExecuted(): never {
  throw new Error('Operations of this schema are answered by their plans, not by its resolvers.');
}
