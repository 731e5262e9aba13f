import { getArgumentValues, type FieldNode, type GraphQLField } from 'graphql';
import { collectFields, selectionsOf } from '../answers/collect-fields.ts';
import { ownError, type AnswerError, type Path } from '../answers/errors.ts';
import { codedError } from '../errors.ts';
import type { Entity } from '../schema/derived.ts';
import type { FieldValue } from './all-field.ts';
import type { Call } from './call.ts';
import { errorsOfList } from './fetch-page.ts';
import { writeReading, writeRecord, type Output } from './list-record.ts';
import { lookupById } from './lookup-by-id.ts';
import { lookupInList } from './lookup-in-list.ts';
import type { LookupParts } from './lookup-parts.ts';
import { readId } from './read-id.ts';
import { readRepresentation, wrongId } from './read-representation.ts';
import type { RecordId, RecordLookup } from './record-loader.ts';

type FieldPlan = (call: Call) => Promise<FieldValue>;

type RecordParts = Omit<LookupParts, 'selections'>;

interface AskedField {
  readonly definition: GraphQLField<unknown, unknown>;
  readonly key: string;
  readonly nodes: readonly FieldNode[];
}

/** A field like `person(id)`: one record by its id. */
export function recordField(parts: RecordParts, entity: Entity, asked: AskedField): FieldPlan {
  const { definition, key, nodes } = asked;
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

/** Of one operation, those of all its `_entities` together. */
const MAX_REPRESENTATIONS = 10_000;
/** They cost so many to a page, before any of them is read. */
const REPRESENTATIONS_PER_PAGE = 100;

/** `_entities`: in the order of the representations, with an error in the place of each that cannot be answered. */
export function entitiesField(
  parts: RecordParts,
  entities: ReadonlyMap<string, Entity>,
  { definition, key, nodes }: AskedField,
): FieldPlan {
  const lookups = new Map<Entity, (call: Call) => RecordLookup>();
  return async (call) => {
    try {
      const args = getArgumentValues(definition, nodes[0]!, call.variables.values);
      const representations = args['representations'] as readonly unknown[];
      call.representations.count += representations.length;
      if (call.representations.count > MAX_REPRESENTATIONS) throw tooMany();
      const pages = Math.floor(representations.length / REPRESENTATIONS_PER_PAGE);
      if (pages > 0) call.pages.pay(pages);
      const own = new Map<Entity, RecordLookup>();
      const values = await Promise.all(
        representations.map(async (representation, place) => {
          const read = readRepresentation(representation, entities);
          const path = [key, place];
          if (typeof read === 'string') return refused(read, path);
          const { entity, id } = read;
          const plan = lookups.get(entity) ?? lookupFor(parts, entity, nodes);
          lookups.set(entity, plan);
          const lookup = own.get(entity) ?? plan(call);
          own.set(entity, lookup);
          return entityValue(call, lookup, id, path);
        }),
      );
      const output: Output = { parts: ['['], errors: [] };
      for (const [place, value] of values.entries()) {
        if (place > 0) output.parts.push(',');
        output.parts.push(...(value.parts ?? ['null']));
        for (const error of value.errors) output.errors.push(error);
      }
      output.parts.push(']');
      return output;
    } catch (error) {
      return { parts: undefined, errors: errorsOfList(error, [key]) };
    }
  };
}

async function entityValue(
  call: Call,
  lookup: RecordLookup,
  id: RecordId,
  path: Path,
): Promise<FieldValue> {
  const output: Output = { parts: [], errors: [] };
  try {
    const isThere = await writeFound(call, lookup, id, output, path);
    return isThere ? output : { parts: undefined, errors: output.errors };
  } catch (error) {
    return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
  }
}

/** Written once: of a thousand wrong ones the stack of an error would cost more than everything else. */
function refused(message: string, path: Path): FieldValue {
  return { parts: undefined, errors: [ownError('BAD_USER_INPUT', message, path)] };
}

function lookupFor(
  parts: RecordParts,
  entity: Entity,
  nodes: readonly FieldNode[],
): (call: Call) => RecordLookup {
  const collected = collectFields(parts.scope, entity.type, selectionsOf(nodes));
  const selections = [...collected.values()].flatMap((field) => field.nodes);
  const its = { ...parts, selections };
  return entity.lookup!.kind === 'id'
    ? lookupById(its, entity.lookup!)
    : lookupInList(its, entity, entity.lookup!.adapter);
}

/** @returns false when there is no such record */
async function writeFound(
  { records }: Call,
  lookup: RecordLookup,
  id: RecordId,
  output: Output,
  path: Path,
): Promise<boolean> {
  const found = await records.load({ lookup, id });
  if (!found) return false;
  output.errors.push(...found.beside.map((error): AnswerError => ({ ...error, path })));
  const { record } = found;
  return 'identity' in record
    ? writeRecord(record, 0, output, path)
    : writeReading(record, output, path);
}

function tooMany() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `One operation may have ${MAX_REPRESENTATIONS} representations, those of all its \`_entities\` together. Split it into several.`,
  );
}
