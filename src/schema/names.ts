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

/** The names under which types and root fields are served. */
export interface ServedNames {
  /** The prefixed name of a type. */
  type(name: string): string;
  /** The name of a served type without the prefix. */
  unprefixed(type: string): string;
  /** The served name of a root field: the prefix, then the name with a capital. */
  derived(name: string): string;
  /** The upstream's name of a served field of Query. */
  upstream(field: string): string;
  /** The upstream's name of a served type; a derived type itself. */
  upstreamType(type: string): string;
  /** What wraps the snapshot under its served names. */
  readonly transforms: Transform[];
  /** Renames the types and fields of a document to the upstream's names. */
  toUpstream(document: DocumentNode): DocumentNode;
}

/**
 * The names under which the upstream's types and root fields are served. The root types keep their names. A prefix is
 * put before all other types, and before the fields of the root types. `PageInfo` becomes `UpstreamPageInfo` if connections
 * are served: the name is Relay's, and shared across a supergraph.
 *
 * @param prefix of SCHEMA_PREFIX, or empty
 * @param servesConnections whether `PageInfo` is Relay's
 * @throws OperatorMistake if a new name is taken
 */
export function servedNames(
  snapshot: GraphQLSchema,
  prefix: string,
  servesConnections: boolean,
): ServedNames {
  const derived = (name: string) =>
    prefix === '' ? name : fieldName(prefix) + name.charAt(0).toUpperCase() + name.slice(1);
  const query = snapshot.getQueryType();
  const fields = new Map(
    Object.keys(query?.getFields() ?? {}).map((name) => [derived(name), name]),
  );
  const served = new Map(
    Object.values(snapshot.getTypeMap()).map((type) => {
      const { name } = type;
      const free = servesConnections && name === RELAY_PAGE_INFO ? `Upstream${name}` : name;
      return [name, keepsName(type, snapshot) ? name : prefix + free] as const;
    }),
  );
  const clash = Array.from(served).find(
    ([name, servedAs]) => name !== servedAs && snapshot.getType(servedAs),
  );
  if (clash) {
    throw new OperatorMistake(
      `The type ${clash[0]} would be served as ${clash[1]}, a name that the service already has. Choose another SCHEMA_PREFIX.`,
    );
  }
  const upstream = new Map(Array.from(served, ([name, servedAs]) => [servedAs, name]));
  const transforms: Transform[] = [
    new RenameTypes((name) => served.get(name) ?? name, {
      renameBuiltins: false,
      renameScalars: true,
    }),
    ...(prefix === '' ? [] : [new RenameRootFields((_, name) => derived(name))]),
  ];
  return {
    type: (name) => prefix + name,
    unprefixed: (type) => (type.startsWith(prefix) ? type.slice(prefix.length) : type),
    derived,
    upstream: (field) => fields.get(field) ?? field,
    upstreamType: (type) => upstream.get(type) ?? type,
    transforms,
    toUpstream: (document) =>
      transforms.reduceRight(
        (request, transform) => transform.transformRequest?.(request, NO_CONTEXT, {}) ?? request,
        { document } as ExecutionRequest,
      ).document,
  };
}

/** The name of a type as a field: `Person` becomes `person`, `HRPerson` becomes `hrPerson`. */
export function fieldName(type: string): string {
  const [capitals = ''] = /^[A-Z]+(?=[A-Z][a-z])|^[A-Z]+(?![a-z])|^[A-Z]/.exec(type) ?? [];
  return capitals.toLowerCase() + type.slice(capitals.length);
}

/** Transforms that rename read only the document. */
const NO_CONTEXT = {} as DelegationContext;

function keepsName(type: GraphQLNamedType, snapshot: GraphQLSchema): boolean {
  const isRoot = type === snapshot.getQueryType() || type === snapshot.getMutationType();
  return isRoot || isIntrospectionType(type) || isSpecifiedScalarType(type);
}
