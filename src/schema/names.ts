import type { DelegationContext, Transform } from '@graphql-tools/delegate';
import type { ExecutionRequest } from '@graphql-tools/utils';
import { FilterRootFields, FilterTypes, RenameRootFields, RenameTypes } from '@graphql-tools/wrap';
import {
  type GraphQLSchema,
  getNamedType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
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
  /** The served name of a root field of the upstream: the prefix, then the name with a capital. */
  field(operation: Operation, name: string): string;
  /** The served name of a derived field of Query. */
  derived(name: string): string;
  /** The upstream's name of a served field of Query. */
  upstream(field: string): string;
}

type Operation = 'Query' | 'Mutation' | 'Subscription';

/** @throws OperatorMistake if a prefixed name is taken, or a root field cannot be renamed */
export function rootNames(snapshot: GraphQLSchema, prefix: string): RootNames {
  const taken = Object.keys(snapshot.getTypeMap()).find((name) => snapshot.getType(prefix + name));
  if (prefix !== '' && taken !== undefined) throw takenName(prefix, taken);
  const bound = [snapshot.getQueryType(), snapshot.getMutationType()].find(
    (root) => root && root.getInterfaces().length > 0,
  );
  if (prefix !== '' && bound) throw boundRoot(bound.name, bound.getInterfaces()[0]!.name);
  const derived = (name: string) =>
    prefix === '' ? name : fieldName(prefix) + name.charAt(0).toUpperCase() + name.slice(1);
  const fields = {
    Query: servedFields(snapshot.getQueryType(), derived),
    Mutation: servedFields(snapshot.getMutationType(), derived),
    Subscription: servedFields(snapshot.getSubscriptionType(), derived),
  };
  const upstream = new Map(Array.from(fields.Query, ([name, served]) => [served, name]));
  return {
    type: (name) => prefix + name,
    unprefixed: (type) => (type.startsWith(prefix) ? type.slice(prefix.length) : type),
    field: (operation, name) => fields[operation].get(name) ?? name,
    derived,
    upstream: (field) => upstream.get(field) ?? field,
  };
}

/** The name of a type as a field: `Person` becomes `person`, `HRPerson` becomes `hrPerson`. */
export function fieldName(type: string): string {
  const [capitals = ''] = /^[A-Z]+(?=[A-Z][a-z])|^[A-Z]+(?![a-z])|^[A-Z]/.exec(type) ?? [];
  return capitals.toLowerCase() + type.slice(capitals.length);
}

function takenName(prefix: string, type: string): OperatorMistake {
  return new OperatorMistake(
    `SCHEMA_PREFIX ${prefix} renames ${type} to ${prefix}${type}, but the service already has a type of that name. ` +
      'Choose another prefix.',
  );
}

function boundRoot(root: string, type: string): OperatorMistake {
  return new OperatorMistake(
    `SCHEMA_PREFIX cannot rename the fields of ${root}, because ${root} implements ${type}, whose fields must keep their names. ` +
      'Remove SCHEMA_PREFIX, or remove that interface from the schema snapshot.',
  );
}

/** Two upstream names may differ only in the case of their first letter: the second one gets a `_` appended. */
function servedFields(
  root: ReturnType<GraphQLSchema['getQueryType']>,
  derived: (name: string) => string,
): ReadonlyMap<string, string> {
  const served = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of Object.keys(root?.getFields() ?? {})) {
    let free = derived(name);
    while (taken.has(free)) free += '_';
    taken.add(free);
    served.set(name, free);
  }
  return served;
}

interface ServedNames {
  /** What wraps the snapshot under its served names. */
  readonly transforms: Transform[];
  /** Renames the types and fields of a document to the upstream's names. */
  readonly toUpstream: (document: DocumentNode) => DocumentNode;
  /** The upstream's name of a served type; undefined for a derived type. */
  readonly upstreamName: (servedType: string) => string | undefined;
}

/** The fields of Query that a router requests from a subgraph, with their types (Federation, subgraph specification). */
const ROUTER_FIELDS: ReadonlyMap<string, string> = new Map([
  ['_service', '_Service'],
  ['_entities', '_Entity'],
]);

export const ROUTER_TYPES: readonly string[] = ['_Any', '_Entity', '_Service'];

export function isRouterField(field: string): boolean {
  return ROUTER_FIELDS.has(field);
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
 * The router fields of an upstream that is a subgraph itself are not served: this gateway is another subgraph.
 *
 * @param servesConnections whether `PageInfo` is Relay's
 * @throws OperatorMistake if the upstream has a field of a router's name that means something else
 */
export function servedNames(
  snapshot: GraphQLSchema,
  names: RootNames,
  servesConnections: boolean,
): ServedNames {
  const routerFields = routerFieldsOf(snapshot, names);
  const isRouterType = (type: string) => routerFields.size > 0 && ROUTER_TYPES.includes(type);
  const hasPrefix = names.type('') !== '';
  const renamed = [
    ...(servesConnections ? [RELAY_PAGE_INFO] : []),
    ...(hasPrefix ? [] : [...ROOTS, ...ROUTER_TYPES]),
  ];
  const served = new Map(
    Object.values(snapshot.getTypeMap())
      .filter(({ name }) => !isRouterType(name))
      .map((type) => {
        const name = renamed.includes(type.name)
          ? freeName(`Upstream${type.name}`, snapshot)
          : type.name;
        return [type.name, keepsName(type, snapshot) ? type.name : names.type(name)];
      }),
  );
  const upstream = new Map(Array.from(served, ([name, servedAs]) => [servedAs, name]));
  const servedName = (name: string) => served.get(name) ?? name;
  const transforms: Transform[] = [
    ...(routerFields.size > 0
      ? [
          new FilterRootFields((_, name) => !routerFields.has(name ?? '')),
          new FilterTypes(({ name }) => !isRouterType(name)),
        ]
      : []),
    new RenameTypes(servedName, { renameBuiltins: false, renameScalars: true }),
    ...(hasPrefix ? [new RenameRootFields(names.field)] : []),
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

/** The router fields that the upstream has itself. */
function routerFieldsOf(snapshot: GraphQLSchema, names: RootNames): ReadonlySet<string> {
  const root = snapshot.getQueryType();
  const present = Object.values(root?.getFields() ?? {}).filter(({ name }) => isRouterField(name));
  const isGenuine = ({ name, type }: (typeof present)[number]) =>
    ROUTER_FIELDS.get(name) === routerTypeOf(type);
  const clash = present.find(
    (field) => !isGenuine(field) && names.field('Query', field.name) === field.name,
  );
  if (clash) throw takenField(`${root!.name}.${clash.name}`);
  return new Set(present.filter(isGenuine).map(({ name }) => name));
}

/** The name of the field's type if it has the shape that Federation requires. */
function routerTypeOf(output: Parameters<typeof getNamedType>[0]): string | undefined {
  const type = getNamedType(output);
  const isRouters = isObjectType(type) ? type.getFields()['sdl'] !== undefined : isUnionType(type);
  return isRouters ? type?.name : undefined;
}

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
