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
const RELAY_PAGE_INFO = 'PageInfo';

export type ServedNames = ReturnType<typeof servedNames>;

/**
 * The names under which the upstream's types and root fields are served. The root types keep their names. A prefix is
 * put before all other types, and before the fields of the root types. `PageInfo` becomes `UpstreamPageInfo` if connections
 * are served: the name is Relay's, and shared across a supergraph.
 *
 * @param prefix of SCHEMA_PREFIX, or empty
 * @param servesConnections whether `PageInfo` is Relay's
 * @throws OperatorMistake if a new name is taken
 */
export function servedNames(snapshot: GraphQLSchema, prefix: string, servesConnections: boolean) {
  const fieldPrefix = fieldName(prefix);
  const rootField = (name: string) =>
    prefix === '' ? name : fieldPrefix + name.charAt(0).toUpperCase() + name.slice(1);
  const served = new Map(
    Object.values(snapshot.getTypeMap()).map((type) => {
      const { name } = type;
      const free = servesConnections && name === RELAY_PAGE_INFO ? `Upstream${name}` : name;
      return [name, keepsName(type, snapshot) ? name : prefix + free] as const;
    }),
  );
  for (const [name, servedAs] of served) {
    if (name === servedAs || !snapshot.getType(servedAs)) continue;
    throw new OperatorMistake(
      `The type ${name} would be served as ${servedAs}, a name that the service already has. Choose another SCHEMA_PREFIX.`,
    );
  }
  const upstreamTypes = new Map(Array.from(served, ([name, servedAs]) => [servedAs, name]));
  const transforms: Transform[] = [
    new RenameTypes((name) => served.get(name) ?? name, {
      renameBuiltins: false,
      renameScalars: true,
    }),
    ...(prefix === '' ? [] : [new RenameRootFields((_, name) => rootField(name))]),
  ];
  return {
    /** The served name of Relay's `PageInfo`. */
    pageInfo: prefix + RELAY_PAGE_INFO,
    /** The prefixed name of a type. */
    type: (name: string) => prefix + name,
    /** The name of a served type without the prefix. */
    unprefixed: (type: string) => (type.startsWith(prefix) ? type.slice(prefix.length) : type),
    /** The served name of a root field: the prefix, then the name with a capital. */
    rootField,
    /** The name of a served root field without the prefix: it may begin with a capital. */
    unprefixedField: (field: string) => field.slice(fieldPrefix.length),
    /** The upstream's name of a served type; a derived type itself. */
    upstreamType: (type: string) => upstreamTypes.get(type) ?? type,
    /** What wraps the snapshot under its served names. */
    transforms,
    /** Renames the types and fields of a document to the upstream's names. */
    toUpstream: (document: DocumentNode): DocumentNode =>
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
