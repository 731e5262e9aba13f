import { isPromise } from '@graphql-tools/utils';
import { isLeafType, isListType, isNonNullType, type GraphQLOutputType } from 'graphql';
import { isLongInteger } from '../engine/json.ts';
import { codedError } from '../errors.ts';

/**
 * Returns a value of a service, in which an error replaces everything that its type does not allow: graphql-tools would
 * make it null without an error.
 *
 * @param field as `Type.field`
 */
export function fitting(value: unknown, type: GraphQLOutputType, field: string): unknown {
  if (value instanceof Error || isPromise(value)) return value;
  if (isNonNullType(type)) {
    return value === null || value === undefined
      ? misfit(value, type, field)
      : fitting(value, type.ofType, field);
  }
  if (value === null || value === undefined) return value;
  if (isListType(type)) {
    if (!Array.isArray(value)) return misfit(value, type, field);
    return value.map((element: unknown) => fitting(element, type.ofType, field));
  }
  if (!isLeafType(type)) return typeof value === 'object' ? value : misfit(value, type, field);
  const leaf = isLongInteger(value) ? longLeaf(value.rawJSON, type.name) : undefined;
  const read = leaf ?? value;
  try {
    type.parseValue(read);
    return read;
  } catch {
    return misfit(value, type, field);
  }
}

/** graphql-js writes ids as strings, even if the service wrote a number. Scalars of the service keep all digits. */
function longLeaf(digits: string, type: string): unknown {
  if (type === 'ID') return digits;
  return type === 'Float' ? Number(digits) : undefined;
}

function misfit(value: unknown, type: GraphQLOutputType, field: string) {
  const what = value === null || value === undefined ? 'null' : 'a value';
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    `A service returned ${what} for ${field}, where its schema promises ${String(type)}. ` +
      'Leave this field out; the operator can compare the schema with the service.',
  );
}
