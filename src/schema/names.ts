import type { DelegationContext, Transform } from '@graphql-tools/delegate';
import type { ExecutionRequest } from '@graphql-tools/utils';
import { RenameRootFields, RenameTypes } from '@graphql-tools/wrap';
import {
  type GraphQLSchema,
  isIntrospectionType,
  isSpecifiedScalarType,
  type DocumentNode,
  type GraphQLNamedType,
} from 'graphql';
import { OperatorMistake } from '../errors.ts';

/** Relay reserves this name: no other type may have it (Relay, cursor connections, 5). */
export const RELAY_PAGE_INFO = 'PageInfo';

/** The names under which types and root fields are served: with the prefix of SCHEMA_PREFIX, if one is set. */
export interface RootNames {
  /** The prefixed name of a type. */
  type(name: string): string;
  /** The name of a served type without the prefix. */
  unprefixed(type: string): string;
  /** The served name of a root field: the prefix, then the name with a capital. */
  derived(name: string): string;
  /** The upstream's name of a served field of Query. */
  upstream(field: string): string;
}

/** @throws OperatorMistake if a prefixed name is taken */
export function rootNames(snapshot: GraphQLSchema, prefix: string): RootNames {
  const taken = Object.keys(snapshot.getTypeMap()).find((name) => snapshot.getType(prefix + name));
  if (prefix !== '' && taken !== undefined) throw takenName(prefix, taken);
  const derived = (name: string) =>
    prefix === '' ? name : fieldName(prefix) + name.charAt(0).toUpperCase() + name.slice(1);
  const fields = Object.keys(snapshot.getQueryType()?.getFields() ?? {});
  const upstream = new Map(fields.map((name) => [derived(name), name]));
  const twice = fields.find((name) => upstream.get(derived(name)) !== name);
  if (twice !== undefined) throw takenName(prefix, twice);
  return {
    type: (name) => prefix + name,
    unprefixed: (type) => (type.startsWith(prefix) ? type.slice(prefix.length) : type),
    derived,
    upstream: (field) => upstream.get(field) ?? field,
  };
}

/** The name of a type as a field: `Person` becomes `person`, `HRPerson` becomes `hrPerson`. */
export function fieldName(type: string): string {
  const [capitals = ''] = /^[A-Z]+(?=[A-Z][a-z])|^[A-Z]+(?![a-z])|^[A-Z]/.exec(type) ?? [];
  return capitals.toLowerCase() + type.slice(capitals.length);
}

function takenName(prefix: string, name: string): OperatorMistake {
  return new OperatorMistake(
    `SCHEMA_PREFIX ${prefix} gives ${name} a name that the service already has. ` +
      'Choose another prefix.',
  );
}

interface ServedNames {
  /** What wraps the snapshot under its served names. */
  readonly transforms: Transform[];
  /** Renames the types and fields of a document to the upstream's names. */
  readonly toUpstream: (document: DocumentNode) => DocumentNode;
  /** The upstream's name of a served type; undefined for a derived type. */
  readonly upstreamName: (servedType: string) => string | undefined;
}

/** The fields of Query that a router requests from a subgraph (Federation, subgraph specification). */
const ROUTER_FIELDS: readonly string[] = ['_service', '_entities'];

export const ROUTER_TYPES: readonly string[] = ['_Any', '_Entity', '_Service'];

export function isRouterField(field: string): boolean {
  return ROUTER_FIELDS.includes(field);
}

/**
 * The names under which the upstream's types and root fields are served. The root types keep their names. A prefix is
 * put before all other types, and before the fields of the root types. These types are renamed to `Upstream…`:
 *
 * - `PageInfo` if connections are served: the name is Relay's, and shared across a supergraph;
 * - without a prefix, `Query`, `Mutation` and `Subscription` if they are not root types: in SDL they would be taken
 *   for root types, and composition refuses them (Federation, ROOT_QUERY_USED);
 * - without a prefix, `_Any`, `_Entity` and `_Service`, which every subgraph has.
 *
 * @param servesConnections whether `PageInfo` is Relay's
 * @throws OperatorMistake if the upstream has a field of a router's name
 */
export function servedNames(
  snapshot: GraphQLSchema,
  names: RootNames,
  servesConnections: boolean,
): ServedNames {
  const query = snapshot.getQueryType();
  const clash = ROUTER_FIELDS.find(
    (name) => query?.getFields()[name] && names.derived(name) === name,
  );
  if (clash !== undefined) throw takenField(`${query!.name}.${clash}`);
  const hasPrefix = names.type('') !== '';
  const renamed = [
    ...(servesConnections ? [RELAY_PAGE_INFO] : []),
    ...(hasPrefix ? [] : [...ROOTS, ...ROUTER_TYPES]),
  ];
  const served = new Map(
    Object.values(snapshot.getTypeMap()).map((type) => {
      const name = renamed.includes(type.name)
        ? freeName(`Upstream${type.name}`, snapshot)
        : type.name;
      return [type.name, keepsName(type, snapshot) ? type.name : names.type(name)];
    }),
  );
  const upstream = new Map(Array.from(served, ([name, servedAs]) => [servedAs, name]));
  const servedName = (name: string) => served.get(name) ?? name;
  const transforms: Transform[] = [
    new RenameTypes(servedName, { renameBuiltins: false, renameScalars: true }),
    ...(hasPrefix ? [new RenameRootFields((_, name) => names.derived(name))] : []),
  ];
  return {
    transforms,
    toUpstream: (document) =>
      transforms.reduceRight(
        (request, transform) => transform.transformRequest?.(request, NO_CONTEXT, {}) ?? request,
        { document } as ExecutionRequest,
      ).document,
    upstreamName: (name) => upstream.get(name),
  };
}

const ROOTS = ['Query', 'Mutation', 'Subscription'];

/** Transforms that rename read only the document. */
const NO_CONTEXT = {} as DelegationContext;

function takenField(field: string): OperatorMistake {
  return new OperatorMistake(
    `The service has a field ${field} of its own, but a Federation subgraph needs that name for another purpose. ` +
      'Set SCHEMA_PREFIX, which renames the field, or remove the field from the schema snapshot.',
  );
}

function keepsName(type: GraphQLNamedType, snapshot: GraphQLSchema): boolean {
  const isRoot = type === snapshot.getQueryType() || type === snapshot.getMutationType();
  return isRoot || isIntrospectionType(type) || isSpecifiedScalarType(type);
}

function freeName(name: string, snapshot: GraphQLSchema): string {
  let free = name;
  while (snapshot.getType(free)) free += '_';
  return free;
}
