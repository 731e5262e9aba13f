import { getArgumentValues } from '@graphql-tools/utils';
import {
  getNamedType,
  isObjectType,
  Kind,
  type FieldNode,
  type GraphQLError,
  type GraphQLField,
  type ValueNode,
} from 'graphql';
import { ownError, type AnswerError, type Path } from '../../answers/answer-errors.ts';
import { collectFields } from '../../answers/collect-fields.ts';
import { codedError } from '../../errors.ts';
import { parseJson } from '../../json.ts';
import type { Entity } from '../../schema/derived.ts';
import { selectionsOf } from '../../selections.ts';
import type { Call, CallVariables } from '../call.ts';
import type { FieldParts } from '../lists/list-field.ts';
import { writeReading, writeRecord, type FieldValue, type Output } from '../output.ts';
import { errorsOfList } from '../pages/page.ts';
import { lookupById } from './lookup-by-id.ts';
import { lookupInList } from './lookup-in-list.ts';
import {
  failedLookup,
  type LookupResult,
  type LookupResults,
  type ReadReference,
  type RecordId,
  type RecordLookup,
  type RecordReference,
} from './record-references.ts';

export type FieldPlan = (call: Call) => Promise<FieldValue>;

/** A root field that returns records by their ids. */
interface SelectedField {
  readonly definition: GraphQLField<unknown, unknown>;
  readonly key: string;
  readonly nodes: readonly FieldNode[];
}

/** Which argument of such a field refers to records, and how. */
interface RecordArgument {
  readonly argument: string;
  readonly read: ReadReference;
}

/** Plans a field that returns one record, like `person(id)`. */
export function recordField(
  parts: FieldParts,
  selected: SelectedField,
  { argument, read }: RecordArgument,
): FieldPlan {
  const { key } = selected;
  const lookUp = lookups(parts, selected);
  const argumentIn = uncoercedArgument(parts, selected, argument);
  const path = [key];
  return async (call) => {
    try {
      const reference = read(argumentIn(call.variables));
      const { write } = await lookUp(call).load([reference]);
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
export function recordsField(
  parts: FieldParts,
  selected: SelectedField,
  { argument, read }: RecordArgument,
): FieldPlan {
  const { key } = selected;
  const lookUp = lookups(parts, selected);
  const argumentIn = uncoercedArgument(parts, selected, argument);
  return async (call) => {
    try {
      const values = asList(argumentIn(call.variables));
      const before = call.references.count;
      call.references.count += values.length;
      if (call.references.count > MAX_REFERENCES) throw tooMany();
      // Of all fields together: 29 of 99 references each cost 28 pages.
      const pages = pagesFor(call.references.count) - pagesFor(before);
      if (pages > 0) call.pages.spend(pages);
      const records = lookUp(call);
      const references = values.map(read);
      records.expect(references);
      const { write } = await records.load(references);
      const output: Output = { parts: ['['], errors: [] };
      for (const index of references.keys()) {
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

interface Lookups {
  /** Refuses answers that are too large before anything is requested: an alias is repeated in every record. */
  expect(references: readonly RecordReference[]): void;
  load(references: readonly RecordReference[]): Promise<Loaded>;
}

interface Loaded {
  /**
   * Writes one of the records that were loaded.
   *
   * @param index of its reference
   * @returns false for null, of which only the errors are written
   */
  write(index: number, output: Output, path: Path): boolean;
}

/** Plans the lookups for what a field selects, on first use of each type. */
function lookups(parts: FieldParts, selected: SelectedField): (call: Call) => Lookups {
  // Nothing is deferred in a record: it is sent whole.
  const whole = { ...parts, scope: { ...parts.scope, defers: false } };
  const plans = new Map<Entity, LookupPlan>();
  return (call: Call) => {
    const ofCall = new Map<Entity, RecordLookup>();
    const lookupOf = (entity: Entity): RecordLookup => {
      const known = ofCall.get(entity);
      if (known) return known;
      const plan = plans.get(entity) ?? lookupFor(whole, entity, selected);
      plans.set(entity, plan);
      const lookup = plan.lookUp(call);
      ofCall.set(entity, lookup);
      return lookup;
    };
    return {
      expect: (references) => {
        let bytes = 0;
        for (const reference of references) {
          if (typeof reference !== 'string') bytes += lookupOf(reference.entity).aliasBytes;
        }
        if (bytes > 0) call.held.expect(bytes);
      },
      load: async (references) => {
        const results: (LookupResult | undefined)[] = [];
        const byEntity = new Map<
          Entity,
          { readonly indexes: number[]; readonly ids: RecordId[] }
        >();
        for (const [index, reference] of references.entries()) {
          if (typeof reference === 'string') continue;
          const { entity, id } = reference;
          const group = byEntity.get(entity) ?? { indexes: [], ids: [] };
          byEntity.set(entity, group);
          group.indexes.push(index);
          group.ids.push(id);
        }
        await Promise.all(
          Array.from(byEntity, async ([entity, { indexes, ids }]) => {
            const lookup = lookupOf(entity);
            const find = (unique: readonly RecordId[]) => findAll(lookup, unique);
            const loaded = await call.loadAll(lookup.name, ids, find);
            for (const [at, index] of indexes.entries()) results[index] = loaded[at];
          }),
        );
        return {
          write: (index, output, path) => {
            const reference = references[index]!;
            if (typeof reference === 'string') {
              output.errors.push(refused(reference, path));
              return false;
            }
            return writeResult(results[index], plans.get(reference.entity)!, output, path);
          },
        };
      },
    };
  };
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
  const lookUp =
    entity.lookup!.kind === 'id'
      ? lookupById(parts, entity.lookup!, selections)
      : lookupInList(parts, entity, entity.lookup!.adapter, selections);
  return { lookUp, refusal };
}

/** Creates no exception: with a thousand invalid references, the stack traces would cost more than the rest. */
function refused(message: string, path: Path): AnswerError {
  return ownError('BAD_USER_INPUT', message, path);
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
  { definition, nodes }: SelectedField,
  argument: string,
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
    // Throws if the argument is null, or has a null where none is allowed.
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
