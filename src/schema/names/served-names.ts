import type { DelegationContext, Transform } from '@graphql-tools/delegate';
import type { ExecutionRequest } from '@graphql-tools/utils';
import { FilterRootFields, FilterTypes, RenameRootFields, RenameTypes } from '@graphql-tools/wrap';
import {
  getNamedType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
  type DocumentNode,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';
import { OperatorMistake } from '../../errors.ts';
import { RELAY_PAGE_INFO, type RootNames } from './root-names.ts';

export interface ServedNames {
  /** What wraps the snapshot under its served names. */
  readonly transforms: Transform[];
  /** Puts a document back into the upstream's names. */
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
