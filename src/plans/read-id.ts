import {
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  getNamedType,
  isEnumType,
  type GraphQLInputType,
  type GraphQLOutputType,
} from 'graphql';
import type { RecordId } from './record-loader.ts';

/**
 * An id as its scalar at the upstream has it: one subgraph writes 12, another "12".
 *
 * @returns undefined when it cannot be one
 */
export function readId(
  given: unknown,
  type: GraphQLInputType | GraphQLOutputType,
): RecordId | undefined {
  if (typeof given !== 'string' && typeof given !== 'number') return undefined;
  const named = getNamedType(type);
  if (named === GraphQLInt) {
    const number = typeof given === 'string' && CANONICAL_INT.test(given) ? Number(given) : given;
    return isInt32(number) ? number : undefined;
  }
  if (named === GraphQLFloat) return typeof given === 'number' ? given : undefined;
  if (named === GraphQLID || named === GraphQLString) {
    // A number that JavaScript cannot hold has lost digits already.
    if (typeof given === 'number') return Number.isSafeInteger(given) ? String(given) : undefined;
    return given;
  }
  if (isEnumType(named)) return named.getValue(String(given)) ? given : undefined;
  return given;
}

const CANONICAL_INT = /^(0|-?[1-9]\d*)$/;

function isInt32(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}
