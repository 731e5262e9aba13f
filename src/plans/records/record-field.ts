import {
  getArgumentValues,
  getNamedType,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  isEnumType,
  type FieldNode,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLOutputType,
} from 'graphql';
import { collectFields, selectionsOf } from '../../answers/collect-fields.ts';
import type { AnswerError, Path } from '../../answers/answer-errors.ts';
import { codedError } from '../../errors.ts';
import type { Entity } from '../../schema/derived.ts';
import type { Call, RecordId, RecordLookup } from '../call.ts';
import type { FieldParts } from '../lists/list-field.ts';
import { writeReading, writeRecord, type FieldValue, type Output } from '../output.ts';
import { errorsOfList } from '../pages/fetch-page.ts';
import { lookupById } from './lookup-by-id.ts';
import { lookupInList } from './lookup-in-list.ts';

export type FieldPlan = (call: Call) => Promise<FieldValue>;

/** A root field that returns records by their ids. */
export interface SelectedField {
  readonly definition: GraphQLField<unknown, unknown>;
  readonly key: string;
  readonly nodes: readonly FieldNode[];
}

/** Plans a field like `person(id)`: one record by its id. */
export function recordField(parts: FieldParts, entity: Entity, selected: SelectedField): FieldPlan {
  const { definition, key, nodes } = selected;
  const lookup = lookupFor(parts, entity, nodes);
  const path = [key];
  return async (call) => {
    try {
      const { id: given } = getArgumentValues(definition, nodes[0]!, call.variables.values);
      const id = readId(given, entity.idType);
      if (id === undefined) throw codedError('BAD_USER_INPUT', wrongId(entity));
      const output: Output = { parts: [], errors: [] };
      const isThere = await writeFound(call, lookup(call), id, output, path);
      return isThere ? output : { parts: undefined, errors: output.errors };
    } catch (error) {
      return { parts: undefined, errors: errorsOfList(error, path) };
    }
  };
}

export function lookupFor(
  parts: FieldParts,
  entity: Entity,
  nodes: readonly FieldNode[],
): (call: Call) => RecordLookup {
  const collected = collectFields(parts.scope, entity.type, selectionsOf(nodes));
  const selections = [...collected.values()].flatMap((field) => field.nodes);
  return entity.lookup!.kind === 'id'
    ? lookupById(parts, entity.lookup!, selections)
    : lookupInList(parts, entity, entity.lookup!.adapter, selections);
}

/** Writes a record that was looked up. @returns false if there is none, or if it is null and must not be */
export async function writeFound(
  { records }: Call,
  lookup: RecordLookup,
  id: RecordId,
  output: Output,
  path: Path,
): Promise<boolean> {
  const found = await records.load({ lookup, id });
  if (!found) return false;
  output.errors.push(...found.unplacedErrors.map((error): AnswerError => ({ ...error, path })));
  const { record } = found;
  return 'identity' in record
    ? writeRecord(record, 0, output, path)
    : writeReading(record, output, path);
}

export function wrongId(entity: Entity): string {
  const type = String(lookupType(entity)).replace('!', '');
  return `The id of a ${entity.type.name} must be of the type ${type}, and this one is not.`;
}

export function lookupType({ lookup, idType }: Entity) {
  return lookup?.kind === 'id' ? lookup.argument.type : idType;
}

/**
 * Converts an id to the upstream's scalar: one subgraph sends 12, another "12".
 *
 * @returns undefined for a value that cannot be such an id
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
    // A number that JavaScript cannot represent has already lost digits.
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
