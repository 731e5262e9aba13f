import { getArgumentValues } from 'graphql';
import { ownError, type Path } from '../../answers/answer-errors.ts';
import { codedError } from '../../errors.ts';
import type { Entity } from '../../schema/derived.ts';
import type { Call, RecordId, RecordLookup } from '../call.ts';
import type { FieldParts } from '../lists/list-field.ts';
import type { FieldValue, Output } from '../output.ts';
import { errorsOfList } from '../pages/fetch-page.ts';
import {
  lookupFor,
  lookupType,
  readId,
  writeFound,
  wrongId,
  type SelectedField,
  type FieldPlan,
} from './record-field.ts';

/** Per operation, of all its `_entities` fields together. */
const MAX_REPRESENTATIONS = 10_000;
/** So many representations cost one page, in addition to the pages that are read for them. */
const REPRESENTATIONS_PER_PAGE = 100;

/** Plans `_entities`: the records in the order of their representations, null with an error where one cannot be read. */
export function entitiesField(
  parts: FieldParts,
  entities: ReadonlyMap<string, Entity>,
  { definition, key, nodes }: SelectedField,
): FieldPlan {
  const lookups = new Map<Entity, (call: Call) => RecordLookup>();
  return async (call) => {
    try {
      const args = getArgumentValues(definition, nodes[0]!, call.variables.values);
      const representations = args['representations'] as readonly unknown[];
      call.representations.count += representations.length;
      if (call.representations.count > MAX_REPRESENTATIONS) throw tooMany();
      const pages = Math.floor(representations.length / REPRESENTATIONS_PER_PAGE);
      if (pages > 0) call.pages.spend(pages);
      const own = new Map<Entity, RecordLookup>();
      const values = await Promise.all(
        representations.map(async (representation, index) => {
          const read = readRepresentation(representation, entities);
          const path = [key, index];
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
      for (const [index, value] of values.entries()) {
        if (index > 0) output.parts.push(',');
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

/** Creates no exception: with a thousand invalid representations, the stack traces would cost more than the rest. */
function refused(message: string, path: Path): FieldValue {
  return { parts: undefined, errors: [ownError('BAD_USER_INPUT', message, path)] };
}

/** The record that a representation refers to, or a message that says why it is invalid. */
export type Representation = { readonly entity: Entity; readonly id: RecordId } | string;

/**
 * Reads one representation of an entity (Federation, `_Any`). Messages repeat nothing of it except the name of its
 * type. Returns a message instead of throwing an error: a body of one megabyte can hold half a million of them.
 */
export function readRepresentation(
  representation: unknown,
  entities: ReadonlyMap<string, Entity>,
): Representation {
  if (
    typeof representation !== 'object' ||
    representation === null ||
    Array.isArray(representation)
  ) {
    return 'A representation must be an object with `__typename` and `id`.';
  }
  const { __typename: type, id: given } = representation as { __typename?: unknown; id?: unknown };
  if (typeof type !== 'string') {
    return 'This representation has no `__typename`, which names its type.';
  }
  const entity = entities.get(type);
  if (!entity) {
    const name = NAME.test(type) ? type : 'of that name';
    return `There is no entity ${name} here. The SDL of this subgraph names those that there are.`;
  }
  if (!entity.lookup) {
    return `No ${type} can be found by its id here: its key is \`resolvable: false\`. Ask another subgraph.`;
  }
  if (given === undefined || given === null) {
    return `This representation of a ${type} has no \`id\`, which is its key.`;
  }
  const id = readId(given, lookupType(entity));
  return id === undefined ? wrongId(entity) : { entity, id };
}

/** A GraphQL name that is short enough to be repeated in a message. */
const NAME = /^[_A-Za-z]\w{0,99}$/;

function tooMany() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `One operation may have ${MAX_REPRESENTATIONS} representations, those of all its \`_entities\` together. Split it into several.`,
  );
}
