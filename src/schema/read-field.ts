import {
  getNamedType,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  type GraphQLFieldResolver,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';
import { codedError } from '../errors.ts';

/**
 * Resolves a field of an upstream type: what the upstream gave under the caller's alias, held against the
 * type. What the type does not allow becomes a coded error at its own place, never a silent null.
 */
export const readField: GraphQLFieldResolver<Record<string, unknown>, unknown> = (
  source,
  _args,
  _context,
  { fieldNodes, fieldName, returnType, schema },
) => checked(source[fieldNodes[0]?.alias?.value ?? fieldName], returnType, schema);

/** Errors are returned in place, also inside lists: the executor gives each its path. */
export function checked(value: unknown, type: GraphQLOutputType, schema: GraphQLSchema): unknown {
  if (value instanceof Error) return value;
  if (isNonNullType(type)) {
    if (value === null || value === undefined) return broken('null', String(type));
    return checked(value, type.ofType, schema);
  }
  if (value === null || value === undefined) return null;
  if (isListType(type)) {
    if (!Array.isArray(value)) return broken('no list', String(type));
    return value.map((item) => checked(item, type.ofType, schema));
  }
  if (isLeafType(type)) {
    try {
      type.parseValue(value);
      return isLikePromise(value) ? broken('an object with the key "then"', String(type)) : value;
    } catch {
      return broken('something else', String(type));
    }
  }
  if (typeof value !== 'object' || Array.isArray(value)) return broken('no object', String(type));
  if (isAbstractType(type)) {
    const { __typename: name } = value as { __typename?: unknown };
    const actual = typeof name === 'string' ? schema.getType(name) : undefined;
    if (!isObjectType(actual) || !schema.isSubType(type, actual)) {
      return broken('an unknown type', getNamedType(type).name);
    }
  }
  return isLikePromise(value) ? withoutThen(value) : value;
}

/** The library that executes operations waits for whatever has a `then`; nobody can have asked for that. */
function isLikePromise(value: unknown): value is { readonly then: unknown } {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'then');
}

function withoutThen(value: { readonly then: unknown }): object {
  const { then: _, ...others } = value;
  return others;
}

function broken(what: string, expected: string): Error {
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service gave ${what} where its schema promises ${expected}. ` +
      'Leave this field out; the operator can compare the schema snapshot with the service.',
  );
}
