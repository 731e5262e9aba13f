import {
  isAbstractType,
  Kind,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import type { Entity } from '../schema/derived.ts';
import { JsonText, type AnswerError, type FieldValue } from './answer.ts';
import type { Call } from './call.ts';
import type { Shared } from './shared.ts';
import { isJsonObject } from './json.ts';
import type { Fragments } from '../selections.ts';
import type { PreparedOperation } from './prepared-operation.ts';
import {
  idTypeOf,
  readId,
  recordValue,
  recordLoads,
  type RecordId,
  type RecordLoads,
} from './records.ts';
import { argumentsReader, selectionsBelow, type SelectedField } from './selected-fields.ts';
import { errorsAt } from './service-answer.ts';
import { fragmentNode } from './syntax.ts';

/** Per operation, of all its fields of this kind together. */
const MAX_REFERENCES = 10_000;

/** A field that returns one record by its id, like `person(id)`. */
export class RecordField {
  readonly key: string;
  readonly #argumentsFor: ReturnType<typeof argumentsReader>;
  readonly #entity: Entity;
  readonly #loads: RecordLoads;

  constructor(
    shared: Shared,
    prepared: PreparedOperation,
    entity: Entity,
    selected: SelectedField,
  ) {
    this.key = selected.key;
    this.#entity = entity;
    this.#argumentsFor = argumentsReader(shared, shared.schema.getQueryType()!.name, selected);
    this.#loads = recordLoads(shared, prepared, entity, selectionsBelow(selected));
  }

  async answer(call: Call): Promise<FieldValue> {
    const path = [this.key];
    try {
      const args = this.#argumentsFor(call.variables.values);
      const id = readId(args['id'], this.#entity);
      if (id === undefined) throw badReference(wrongId(this.#entity));
      return await recordValue(this.#loads.load(call, id), path);
    } catch (error) {
      return { value: null, errors: errorsAt(error, path) };
    }
  }
}

/** `_entities`: records by their representations, in their order, null with an error where one cannot be read. */
export class EntitiesField {
  readonly key: string;
  readonly #argumentsFor: ReturnType<typeof argumentsReader>;
  readonly #entities: ReadonlyMap<string, Entity>;
  readonly #loadsOf: (entity: Entity) => RecordLoads;

  constructor(
    shared: Shared,
    prepared: PreparedOperation,
    entities: readonly Entity[],
    selected: SelectedField,
  ) {
    this.key = selected.key;
    this.#entities = new Map(entities.map((entity) => [entity.type.name, entity]));
    this.#argumentsFor = argumentsReader(shared, shared.schema.getQueryType()!.name, selected);
    const selections = selectionsBelow(selected);
    const known = new Map<Entity, RecordLoads>();
    this.#loadsOf = (entity) => {
      const ofType =
        known.get(entity) ??
        recordLoads(
          shared,
          prepared,
          entity,
          selectionsOn(shared.schema, entity.type, selections, prepared.fragments),
        );
      known.set(entity, ofType);
      return ofType;
    };
  }

  async answer(call: Call): Promise<FieldValue> {
    try {
      const args = this.#argumentsFor(call.variables.values);
      const representations = args['representations'] as readonly unknown[];
      call.references.count += representations.length;
      if (call.references.count > MAX_REFERENCES) throw tooMany();
      const values = await Promise.all(
        representations.map((representation, index) => this.#valueOf(call, representation, index)),
      );
      const errors = values.flatMap((value) => value.errors);
      const texts = values.map(({ value }) => value?.pieces.join('') ?? 'null');
      for (const text of texts) call.hold({}, text.length);
      return { value: JsonText.of(`[${texts.join(',')}]`), errors };
    } catch (error) {
      return { value: null, errors: errorsAt(error, [this.key]) };
    }
  }

  async #valueOf(call: Call, representation: unknown, index: number): Promise<FieldValue> {
    const path = [this.key, index];
    const reference = this.#read(representation);
    if (typeof reference !== 'string') {
      return recordValue(this.#loadsOf(reference.entity).load(call, reference.id), path);
    }
    // No exception: with a thousand invalid references, the stack traces would cost more than the rest.
    const error: AnswerError = {
      service: { message: reference, path, extensions: { code: 'BAD_USER_INPUT' } },
    };
    return { value: null, errors: [error] };
  }

  /** Returns a message for an invalid one, which repeats nothing of it. */
  #read(representation: unknown): { readonly entity: Entity; readonly id: RecordId } | string {
    const { __typename: type, id } = isJsonObject(representation) ? representation : {};
    const entity = typeof type === 'string' ? this.#entities.get(type) : undefined;
    if (!entity || id === undefined || id === null) return NO_REFERENCE;
    if (!entity.lookup) {
      return `No ${entity.type.name} can be found by its id here: its key is \`resolvable: false\`. Ask another subgraph.`;
    }
    const read = readId(id, entity);
    return read === undefined ? wrongId(entity) : { entity, id: read };
  }
}

const NO_REFERENCE =
  'A representation must be an object with the `__typename` of an entity here, and its `id`. The SDL of this subgraph ' +
  'names the entities.';

function wrongId(entity: Entity): string {
  return `The id of a ${entity.type.name} must be of the type ${idTypeOf(entity).name}, and this one is not.`;
}

function badReference(message: string) {
  return codedError('BAD_USER_INPUT', message);
}

function tooMany() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `One operation may refer to ${MAX_REFERENCES} records, those of all its fields together. Split it into several.`,
  );
}

/** Returns what selections on a union of the gateway select for one of its types, which the service knows. */
function selectionsOn(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  selections: readonly SelectionNode[],
  fragments: Fragments,
): readonly SelectionNode[] {
  return selections.flatMap((selection): readonly SelectionNode[] => {
    if (selection.kind === Kind.FIELD) return [selection];
    const isInline = selection.kind === Kind.INLINE_FRAGMENT;
    const fragment = isInline ? selection : fragments.get(selection.name.value)!;
    const condition = fragment.typeCondition?.name.value;
    // The type may be one of the service's own schema, which has the same names.
    const on = condition === undefined ? undefined : schema.getType(condition);
    const isOurs = on === undefined || on.name === UNION;
    const canBe =
      on?.name === type.name ||
      (isAbstractType(on) && schema.getPossibleTypes(on).some(({ name }) => name === type.name));
    if (!isOurs) return canBe ? [selection] : [];
    const inner = selectionsOn(schema, type, fragment.selectionSet.selections, fragments);
    return inner.length > 0 ? [fragmentNode(undefined, inner, selection.directives)] : [];
  });
}

const UNION = '_Entity';
