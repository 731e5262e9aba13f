import type { DelegationContext, Transform } from '@graphql-tools/delegate';
import type { ExecutionRequest } from '@graphql-tools/utils';
import { FilterRootFields, FilterTypes, RenameRootFields, RenameTypes } from '@graphql-tools/wrap';
import {
  isIntrospectionType,
  isSpecifiedScalarType,
  type DocumentNode,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';
import { RELAY_PAGE_INFO, type RootNames } from './derivation/root-names.ts';
import { routerFieldsOf, ROUTER_TYPES } from './derivation/router-fields.ts';

/** A document in served names, put back into the upstream's. */
export type RequestTransform = (document: DocumentNode) => DocumentNode;

export interface ServedNames {
  /** For wrapping the snapshot. */
  readonly transforms: Transform[];
  readonly toUpstream: RequestTransform;
  /** What callers see of a type of the upstream. */
  readonly servedName: (upstreamType: string) => string;
  /** What the upstream calls a type that callers see; undefined for one that is derived. */
  readonly upstreamName: (servedType: string) => string | undefined;
}

/**
 * What the upstream's types and root fields are called here. The roots keep their names. A prefix is put before
 * all other types, and before the fields of the roots. These types give way, and are called `Upstream…`:
 *
 * - `PageInfo` where connections are served: the name is Relay's, and shared across a supergraph;
 * - without a prefix, `Query`, `Mutation` and `Subscription` that are only called like a root: in SDL they would
 *   be taken for one, and a supergraph refuses them (Federation, ROOT_QUERY_USED);
 * - without a prefix, `_Any`, `_Entity` and `_Service`, which every subgraph has.
 *
 * @param servesConnections whether `PageInfo` is Relay's
 */
export function servedNames(
  snapshot: GraphQLSchema,
  names: RootNames,
  servesConnections: boolean,
): ServedNames {
  const ofRouters = routerFieldsOf(snapshot, names);
  const isOfRouters = (type: string) => ofRouters.size > 0 && ROUTER_TYPES.includes(type);
  const hasPrefix = names.type('') !== '';
  const givingWay = [
    ...(servesConnections ? [RELAY_PAGE_INFO] : []),
    ...(hasPrefix ? [] : [...ROOTS, ...ROUTER_TYPES]),
  ];
  const served = new Map(
    Object.values(snapshot.getTypeMap())
      .filter(({ name }) => !isOfRouters(name))
      .map((type) => {
        const name = givingWay.includes(type.name)
          ? freeName(`Upstream${type.name}`, snapshot)
          : type.name;
        return [type.name, keepsName(type, snapshot) ? type.name : names.type(name)];
      }),
  );
  const upstream = new Map(Array.from(served, ([name, servedAs]) => [servedAs, name]));
  const servedName = (name: string) => served.get(name) ?? name;
  const transforms: Transform[] = [
    ...(ofRouters.size > 0
      ? [
          new FilterRootFields((_, name) => !ofRouters.has(name ?? '')),
          new FilterTypes(({ name }) => !isOfRouters(name)),
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
    servedName,
    upstreamName: (name) => upstream.get(name),
  };
}

const ROOTS = ['Query', 'Mutation', 'Subscription'];

function keepsName(type: GraphQLNamedType, snapshot: GraphQLSchema): boolean {
  const isRoot = type === snapshot.getQueryType() || type === snapshot.getMutationType();
  return isRoot || isIntrospectionType(type) || isSpecifiedScalarType(type);
}

/** Renaming looks at nothing but the document. */
const NO_CONTEXT = {} as DelegationContext;

function freeName(name: string, snapshot: GraphQLSchema): string {
  let free = name;
  while (snapshot.getType(free)) free += '_';
  return free;
}
