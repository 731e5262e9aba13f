import {
  isExternalObject,
  type MergedTypeConfig,
  type MergedTypeResolver,
  type SubschemaConfig,
} from '@graphql-tools/delegate';
import { createMergedTypeResolver } from '@graphql-tools/stitch';
import { parseSelectionSet } from '@graphql-tools/utils';
import {
  GraphQLError,
  Kind,
  print,
  type FieldNode,
  type GraphQLFieldResolver,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { isLongInteger } from '../engine/json.ts';
import { keyOf } from '../engine/syntax.ts';
import type { Requirement } from '../schema/field-scopes.ts';
import type { AddedParts } from './additions.ts';

export type Resolver = GraphQLFieldResolver<unknown, unknown>;

/** A resolver as `stitchSchemas` takes it. */
export interface ResolverConfig {
  readonly selectionSet?: string;
  readonly resolve?: Resolver;
}

/*
 * What resolvers and merges require
 *
 * graphql-tools selects what a resolver requires beside the fields of the caller, in the same object. There,
 * `{ firstName: lastName fullName }` would give the resolver of `fullName` a wrong first name, and `{ id: email rating }`
 * would ask a second service for the rating of an email address. Therefore requirements are selected under keys that no
 * caller may use:
 *
 *   { firstName: lastName fullName }   is sent as   { firstName: lastName _rsNeeds_Person_firstName: firstName }
 *
 * and resolvers and merges get an object with the plain names. The name of the type is in the key because the types of a
 * union may require fields of one name and different types.
 */

function keyPrefix(type: string): string {
  return `${PREFIX}${type}_`;
}

/** Not `_rs_`: keys that begin so are removed from what the plans answer (engine/mend.ts). */
const PREFIX = '_rsNeeds_';

/** Whether a field of a delegated operation was selected for a resolver or a merge, and not by a caller. */
export function isRequirement({ alias }: FieldNode): boolean {
  return alias !== undefined && isRequirementKey(alias.value);
}

export function isRequirementKey(step: string | number): boolean {
  return typeof step === 'string' && step.startsWith(PREFIX);
}

/** Gives the fields of a requirement their keys. @throws GraphQLError if the text does not parse */
export function underOurKeys(type: string, selectionSet: string): string {
  const renamed = ({ selections, ...set }: SelectionSetNode): SelectionSetNode => ({
    ...set,
    selections: selections.map((selection): SelectionNode => {
      if (selection.kind === Kind.FRAGMENT_SPREAD) return selection;
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        return { ...selection, selectionSet: renamed(selection.selectionSet) };
      }
      const key = keyOf(selection);
      // graphql-tools selects it itself, and no other field may have this key.
      if (key === '__typename') return selection;
      return { ...selection, alias: { kind: Kind.NAME, value: `${keyPrefix(type)}${key}` } };
    }),
  });
  return print(renamed(parseSelectionSet(selectionSet, { noLocation: true })));
}

/**
 * Returns an object with the plain names of what a type's resolver or merge requires. An integer that JavaScript cannot
 * hold is the text of its digits.
 *
 * @throws the error of a required field
 */
export function withPlainNames(type: string, parent: unknown): unknown {
  if (typeof parent !== 'object' || parent === null) return parent;
  const members = parent as Readonly<Record<string, unknown>>;
  const prefix = keyPrefix(type);
  let plain: Record<string, unknown> | undefined;
  for (const key of Object.keys(members)) {
    if (!key.startsWith(prefix)) continue;
    const value = members[key];
    if (value instanceof Error) throw withoutPath(value);
    plain ??= copyOf(parent);
    plain[key.slice(prefix.length)] = isLongInteger(value) ? value.rawJSON : value;
  }
  return plain ?? parent;
}

/** Copies an object with its prototype, on which the values of a class may be. */
function copyOf(object: object): Record<string, unknown> {
  const copy = Object.create(Object.getPrototypeOf(object) as object | null) as object;
  return Object.assign(copy, object) as Record<string, unknown>;
}

/**
 * Returns the error that graphql-js locates anew. graphql-tools gives an error a path without the indexes of lists, and
 * graphql-js keeps a path that is there.
 */
export function withoutPath(error: Error): Error {
  let inner = error;
  while (inner instanceof GraphQLError && inner.originalError) inner = inner.originalError;
  if (!(inner instanceof GraphQLError) || !inner.path) return inner;
  return new GraphQLError(inner.message, { extensions: inner.extensions });
}

/** Rewrites the merges of a subschema. */
export function mergedUnderOurKeys(config: SubschemaConfig): SubschemaConfig {
  const entries = Object.entries(config.merge ?? {});
  return {
    ...config,
    merge: Object.fromEntries(
      entries.map(([type, merge]) => [type, mergeUnderOurKeys(type, merge)]),
    ),
  };
}

function mergeUnderOurKeys(type: string, config: MergedTypeConfig): MergedTypeConfig {
  const { selectionSet, fields, entryPoints, key } = config;
  const plain = (record: unknown) => withPlainNames(type, record);
  const resolve = config.resolve ?? createMergedTypeResolver(config, type);
  return {
    ...config,
    ...(selectionSet !== undefined && { selectionSet: underOurKeys(type, selectionSet) }),
    ...(key && { key: (record) => key(plain(record)) as unknown }),
    ...(resolve && { resolve: throwing((record, ...rest) => resolve(plain(record), ...rest)) }),
    ...(entryPoints && { entryPoints: entryPoints.map((entry) => mergeUnderOurKeys(type, entry)) }),
    ...(fields && {
      fields: Object.fromEntries(
        Object.entries(fields).map(([name, field]) => [
          name,
          field.selectionSet === undefined
            ? field
            : { ...field, selectionSet: underOurKeys(type, field.selectionSet) },
        ]),
      ),
    }),
  };
}

/** Throws the error of a record that is not found. graphql-tools would merge it with what a resolver has returned. */
function throwing(resolve: MergedTypeResolver): MergedTypeResolver {
  return async (...args) => {
    const record: unknown = await resolve(...args);
    if (record instanceof Error) throw withoutPath(record);
    return record;
  };
}

/**
 * Prepares an object that a resolver returned, such as `{ id }`: graphql-tools requests its other fields by the keys of
 * merges, which may be any of its members.
 */
export function withMergeKeys(value: object, type: string): object {
  if (value instanceof Error || isExternalObject(value)) return value;
  const keys = Object.entries(value).map(
    ([name, key]) => [`${keyPrefix(type)}${name}`, key] as const,
  );
  // Otherwise a selected `__typename` alone would be requested.
  return Object.assign(copyOf(value), { __typename: type }, Object.fromEntries(keys));
}

export function requirementsOf({
  resolvers,
  subschemas,
}: Pick<AddedParts, 'resolvers' | 'subschemas'>): Requirement[] {
  const merges = subschemas.flatMap(({ merge = {} }) =>
    Object.entries(merge).map(([type, { fields = {} }]) => [type, fields] as const),
  );
  return [...resolvers.flatMap((map) => Object.entries(map)), ...merges].flatMap(([type, fields]) =>
    Object.entries(fields as object).flatMap(([field, config]: [string, unknown]) => {
      const { selectionSet } = (config ?? {}) as Pick<ResolverConfig, 'selectionSet'>;
      return selectionSet === undefined ? [] : [{ type, field, selectionSet }];
    }),
  );
}
