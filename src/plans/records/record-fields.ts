import { getArgumentValues } from '@graphql-tools/utils';
import {
  getNamedType,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  isEnumType,
  isObjectType,
  Kind,
  type FieldNode,
  type GraphQLError,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLOutputType,
  type ValueNode,
} from 'graphql';
import { gatewayError, type Path } from '../../answers/answer-errors.ts';
import { collectFields } from '../../answers/collect-fields.ts';
import { codedError } from '../../errors.ts';
import { Json, parseJson } from '../../json.ts';
import type { Entity } from '../../schema/derived.ts';
import { selectionsOf } from '../../selections.ts';
import type { Call, CallVariables } from '../call.ts';
import type { FieldParts } from '../lists/list-field.ts';
import { writeReading, writeRecord, type FieldValue, type Output } from '../output.ts';
import { errorsOfList } from '../pages/page.ts';
import {
  failedLookup,
  recordLookup,
  type LookupResult,
  type LookupResults,
  type RecordId,
  type RecordLookup,
} from './record-lookup.ts';

export type FieldPlan = (call: Call) => Promise<FieldValue>;

/** A root field that returns records by their ids. */
interface SelectedField {
  readonly definition: GraphQLField<unknown, unknown>;
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  /** The argument that refers to records. */
  readonly argument: string;
  readonly read: ReadReference;
}

/** Plans a field that returns one record, like `person(id)`. */
export function recordField(parts: FieldParts, selected: SelectedField): FieldPlan {
  const { key, read } = selected;
  const load = recordLoader(parts, selected);
  const argumentIn = uncoercedArgument(parts, selected);
  const path = [key];
  return async (call) => {
    try {
      const write = await load(call, [read(argumentIn(call.variables))]);
      const output: Output = { parts: [], errors: [] };
      return write(0, output, path) ? output : { parts: undefined, errors: output.errors };
    } catch (error) {
      return { parts: undefined, errors: errorsOfList(error, path) };
    }
  };
}

/** Per operation, of all its fields of this kind together. */
const MAX_REFERENCES = 10_000;
/** The number of references that cost one page, in addition to the pages that are read for them. */
const REFERENCES_PER_PAGE = 100;

/**
 * Plans a field that returns several records, like `_entities`: in the order of their references, null with an error
 * where one cannot be read.
 */
export function recordsField(parts: FieldParts, selected: SelectedField): FieldPlan {
  const { key, read } = selected;
  const load = recordLoader(parts, selected);
  const argumentIn = uncoercedArgument(parts, selected);
  return async (call) => {
    try {
      const values = asList(argumentIn(call.variables));
      const before = call.references.count;
      call.references.count += values.length;
      if (call.references.count > MAX_REFERENCES) throw tooMany();
      // Of all fields together: 29 of 99 references each cost 28 pages.
      const pages = pagesFor(call.references.count) - pagesFor(before);
      if (pages > 0) call.pages.spend(pages);
      const write = await load(call, values.map(read));
      const output: Output = { parts: ['['], errors: [] };
      for (const index of values.keys()) {
        if (index > 0) output.parts.push(',');
        if (!write(index, output, [key, index])) output.parts.push('null');
      }
      output.parts.push(']');
      return output;
    } catch (error) {
      return { parts: undefined, errors: errorsOfList(error, [key]) };
    }
  };
}

function pagesFor(references: number): number {
  return Math.floor(references / REFERENCES_PER_PAGE);
}

/** In GraphQL, a value stands for a list of this value. */
function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

/** Loads records, and returns what writes them. */
type LoadRecords = (call: Call, references: readonly RecordReference[]) => Promise<WriteRecord>;

/**
 * Writes one of the records that were loaded.
 *
 * @param index of its reference
 * @returns false for null, of which only the errors are written
 */
type WriteRecord = (index: number, output: Output, path: Path) => boolean;

/** Plans the lookups for what a field selects, on first use of each type. */
function recordLoader(parts: FieldParts, selected: SelectedField): LoadRecords {
  // Nothing is deferred in a record: it is sent whole.
  const whole = { ...parts, scope: { ...parts.scope, defers: false } };
  const plans = new Map<Entity, LookupPlan>();
  const planFor = (entity: Entity): LookupPlan => {
    const plan = plans.get(entity) ?? lookupFor(whole, entity, selected);
    plans.set(entity, plan);
    return plan;
  };
  return async (call, references) => {
    const groups = new Map<Entity, RecordGroup>();
    let aliasBytes = 0;
    for (const [index, reference] of references.entries()) {
      if (typeof reference === 'string') continue;
      const { entity, id } = reference;
      let group = groups.get(entity);
      if (!group) {
        group = { lookup: planFor(entity).lookUp(call), indexes: [], ids: [] };
        groups.set(entity, group);
      }
      group.indexes.push(index);
      group.ids.push(id);
      aliasBytes += group.lookup.aliasBytes;
    }
    // Refuses answers that are too large before anything is requested: an alias is repeated in every record.
    if (aliasBytes > 0) call.held.expect(aliasBytes);
    const results: (LookupResult | undefined)[] = [];
    await Promise.all(
      Array.from(groups.values(), async ({ lookup, indexes, ids }) => {
        const find = (unique: readonly RecordId[]) => findAll(lookup, unique);
        const loaded = await call.loadAll(lookup.name, ids, find);
        for (const [at, index] of indexes.entries()) results[index] = loaded[at];
      }),
    );
    return (index, output, path) => {
      const reference = references[index]!;
      if (typeof reference !== 'string') {
        return writeResult(results[index], plans.get(reference.entity)!, output, path);
      }
      // No exception: with a thousand invalid references, the stack traces would cost more than the rest.
      output.errors.push(gatewayError('BAD_USER_INPUT', reference, path));
      return false;
    };
  };
}

/** References to records of one type. */
interface RecordGroup {
  readonly lookup: RecordLookup;
  readonly indexes: number[];
  readonly ids: RecordId[];
}

async function findAll(lookup: RecordLookup, ids: readonly RecordId[]): Promise<LookupResults> {
  try {
    return await lookup.find(ids);
  } catch (error) {
    // Kept like any result, so an operation does not request it again.
    const failed = failedLookup(error);
    return ids.map(() => failed);
  }
}

function writeResult(
  result: LookupResult | undefined,
  { refusal }: LookupPlan,
  output: Output,
  path: Path,
): boolean {
  if (!result) return false;
  if ('failure' in result) {
    for (const error of errorsOfList(result.failure, path)) output.errors.push(error);
    return false;
  }
  if (refusal) {
    output.errors.push({ thrown: refusal, path });
    return false;
  }
  const { record, unplacedErrors } = result;
  for (const error of unplacedErrors) output.errors.push({ ...error, path });
  if (!Buffer.isBuffer(record)) {
    return 'identity' in record
      ? writeRecord(record, 0, output, path)
      : writeReading(record, output, path);
  }
  output.parts.push(record);
  return true;
}

interface LookupPlan {
  readonly lookUp: (call: Call) => RecordLookup;
  /** The error of each record: see `CollectedFields`. */
  readonly refusal: GraphQLError | undefined;
}

function lookupFor(
  parts: FieldParts,
  entity: Entity,
  { definition, nodes }: SelectedField,
): LookupPlan {
  const selected = selectionsOf(nodes);
  const { fields, refusal } = collectFields(parts.scope, entity.type, selected);
  // Of fragments on several types, only the fields of this one are sent; of a condition that is null, nothing.
  const isSentAsIs = isObjectType(getNamedType(definition.type)) && !refusal;
  const selections = isSentAsIs ? selected : [...fields.values()].flatMap((field) => field.nodes);
  return { lookUp: recordLookup(parts, entity, selections), refusal };
}

function tooMany() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `One operation may refer to ${MAX_REFERENCES} records, those of all its fields together. Split it into several.`,
  );
}

/**
 * Makes a function that reads an argument that must not be null. Its value is not coerced to its type, because numbers
 * would lose digits: where they may, they are `Json`.
 */
function uncoercedArgument(
  { operation }: FieldParts,
  { definition, nodes, argument }: SelectedField,
): (variables: CallVariables) => unknown {
  const node = nodes[0]!;
  const { value } = node.arguments!.find(({ name }) => name.value === argument)!;
  const defaults = new Map(
    operation.variableDefinitions.map(({ variable, defaultValue }) => [
      variable.name.value,
      defaultValue,
    ]),
  );
  return (variables) => {
    // Throws if the argument is null, or has a null that its type does not allow.
    getArgumentValues(definition, node, variables.values);
    return valueIn(value, variables);
  };

  function valueIn(from: ValueNode, variables: CallVariables): unknown {
    switch (from.kind) {
      case Kind.VARIABLE: {
        const { value: name } = from.name;
        const passed = variables.uncoerced(name);
        const byDefault = passed === undefined ? defaults.get(name) : undefined;
        return byDefault ? valueIn(byDefault, variables) : passed;
      }
      case Kind.INT:
      case Kind.FLOAT:
        return parseJson(from.value);
      case Kind.LIST:
        return from.values.map((item) => valueIn(item, variables));
      case Kind.OBJECT:
        return Object.fromEntries(
          from.fields.map((field) => [field.name.value, valueIn(field.value, variables)]),
        );
      case Kind.NULL:
        return null;
      default:
        return from.value;
    }
  }
}

/** The record that a caller refers to, or a message that says why the reference is invalid. */
export type RecordReference = { readonly entity: Entity; readonly id: RecordId } | string;

/**
 * Reads a reference, as `uncoercedArgument` returns it. Messages repeat nothing of it except the name of its type. Returns a
 * message instead of throwing an error: a body of one megabyte can hold half a million references.
 */
export type ReadReference = (reference: unknown) => RecordReference;

/** Reads the id that `person(id)` takes. */
export function idReader(entity: Entity): ReadReference {
  return (value) => readServiceId(value, entity);
}

/** Reads a representation of an entity (Federation, `_Any`). */
export function representationReader(entities: readonly Entity[]): ReadReference {
  const byName = new Map(entities.map((entity) => [entity.type.name, entity]));
  return (representation) => {
    if (
      typeof representation !== 'object' ||
      representation === null ||
      Array.isArray(representation)
    ) {
      return 'A representation must be an object with `__typename` and `id`.';
    }
    const { __typename: type, ...keys } = representation as Readonly<Record<string, unknown>>;
    if (typeof type !== 'string') {
      return 'This representation has no `__typename`, which names its type.';
    }
    const entity = byName.get(type);
    if (!entity) {
      const name = NAME.test(type) ? type : 'of that name';
      return `There is no entity ${name} here. The SDL of this subgraph names those that there are.`;
    }
    if (!entity.lookup) {
      return `No ${type} can be found by its id here: its key is \`resolvable: false\`. Ask another subgraph.`;
    }
    const { id } = keys;
    if (id === undefined || id === null) {
      return `This representation of a ${type} has no \`id\`, which is its key.`;
    }
    return readServiceId(id, entity);
  };
}

/** A GraphQL name that is short enough to be repeated in a message. */
const NAME = /^[_A-Za-z]\w{0,99}$/;

function readServiceId(value: unknown, entity: Entity): RecordReference {
  const { lookup, idType } = entity;
  const type = lookup?.kind === 'id' ? lookup.argument.type : idType;
  const id = readId(value, type);
  if (id !== undefined) return { entity, id };
  return `The id of a ${entity.type.name} must be of the type ${String(type).replace('!', '')}, and this one is not.`;
}

/**
 * Converts an id to the upstream's scalar: one subgraph sends 12, another "12".
 *
 * @returns undefined for a value that cannot be such an id
 */
function readId(value: unknown, type: GraphQLInputType | GraphQLOutputType): RecordId | undefined {
  const number = numberIn(value);
  const text = typeof value === 'string' ? value : undefined;
  const named = getNamedType(type);
  if (named === GraphQLInt) return intIn(number ?? CANONICAL_INT.exec(text ?? '')?.[0]);
  if (named === GraphQLFloat) return number;
  if (named === GraphQLID || named === GraphQLString) {
    return asString(number === undefined ? text : digitsOf(number));
  }
  if (isEnumType(named)) return named.getValue(text ?? '') ? asString(text) : undefined;
  return number ?? asString(text);
}

/** Returns a number as it was written. */
function numberIn(value: unknown): string | undefined {
  if (value instanceof Json) return value.raw;
  // A whole number that JavaScript cannot represent has already lost digits.
  const isKnown = typeof value === 'number' && Number.isSafeInteger(Math.trunc(value));
  return isKnown ? String(value) : undefined;
}

const CANONICAL_INT = /^(0|-?[1-9]\d*)$/;

function intIn(text: string | undefined): string | undefined {
  const number = Number(text);
  return (number | 0) === number ? String(number) : undefined;
}

/** Returns the digits of a whole number, even of one that JavaScript cannot represent. */
function digitsOf(number: string): string | undefined {
  const value = Number(number);
  if (Number.isSafeInteger(value)) return String(value);
  return DIGITS.test(number) ? number : undefined;
}

const DIGITS = /^-?\d+$/;

function asString(text: string | undefined): string | undefined {
  return text === undefined ? undefined : JSON.stringify(text);
}
