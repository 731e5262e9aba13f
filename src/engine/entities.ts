import { doTypesOverlap, Kind, type GraphQLCompositeType, type SelectionNode } from 'graphql';
import { codedError } from '../errors.ts';
import type { Entity } from '../schema/derived.ts';
import { errorsBelow, JsonText, type FieldValue } from './answer.ts';
import type { Call } from './call.ts';
import { isJsonObject } from './json.ts';
import type { PreparedOperation } from './prepared-operation.ts';
import { readId, recordLoader, type LoadRecord } from './records.ts';
import { argumentsOf, selectionsBelow, type SelectedField } from './selected-fields.ts';
import { failed } from './service-answer.ts';
import type { Shared } from './shared.ts';
import { fragmentNode } from './syntax.ts';

/** Answers a field of the root in a call. */
type AnswerField = (call: Call) => Promise<FieldValue>;

/** Per operation, of all its fields of this kind together. */
const MAX_REFERENCES = 10_000;

/** Compiles a field that returns one record by its id, like `person(id)`. */
export function recordField(
  shared: Shared,
  prepared: PreparedOperation,
  entity: Entity,
  selected: SelectedField,
): AnswerField {
  const query = shared.schema.getQueryType()!.name;
  const load = recordLoader(shared, prepared, entity, selectionsBelow(selected));
  return async (call) => {
    const args = argumentsOf(shared, query, selected, call.variables.values);
    const id = readId(args['id'], entity);
    if (id === undefined) throw codedError('BAD_USER_INPUT', wrongId(entity));
    return load(call, id);
  };
}

/** Compiles `_entities`: records by their representations, in their order, null with an error if one cannot be read. */
export function entitiesField(
  shared: Shared,
  prepared: PreparedOperation,
  entities: readonly Entity[],
  selected: SelectedField,
): AnswerField {
  const query = shared.schema.getQueryType()!.name;
  const byType = new Map(entities.map((entity) => [entity.type.name, entity]));
  const selections = selectionsBelow(selected);
  const loaders = new Map<Entity, LoadRecord>();
  const loaderOf = (entity: Entity): LoadRecord => {
    const known = loaders.get(entity);
    if (known) return known;
    const own = selectionsOn(shared, prepared, entity.type.name, selections);
    const made = recordLoader(shared, prepared, entity, own);
    loaders.set(entity, made);
    return made;
  };

  const valueOf = async (call: Call, representation: unknown): Promise<FieldValue> => {
    const { __typename: type, id } = isJsonObject(representation) ? representation : {};
    const entity = typeof type === 'string' ? byType.get(type) : undefined;
    if (!entity || id === undefined || id === null) return refused(NO_REFERENCE);
    if (!entity.lookup) return refused(notFoundHere(entity));
    const read = readId(id, entity);
    if (read === undefined) return refused(wrongId(entity));
    return loaderOf(entity)(call, read).catch(failed);
  };

  return async (call) => {
    const args = argumentsOf(shared, query, selected, call.variables.values);
    const representations = args['representations'] as readonly unknown[];
    call.references.count += representations.length;
    if (call.references.count > MAX_REFERENCES) throw tooMany();
    const values = await Promise.all(representations.map((each) => valueOf(call, each)));
    const texts = values.map(({ value }) => value?.pieces.join('') ?? 'null');
    for (const text of texts) call.hold({}, text.length);
    return {
      value: new JsonText([`[${texts.join(',')}]`]),
      errors: values.flatMap(({ errors }, index) => errorsBelow([index], errors)),
    };
  };
}

/** No exception: with a thousand invalid references, the stack traces would cost more than the rest. */
function refused(message: string): FieldValue {
  const service = { message, extensions: { code: 'BAD_USER_INPUT' } };
  return { value: null, errors: [{ service, path: [] }] };
}

/** These messages repeat nothing of a representation. */
const NO_REFERENCE =
  'A representation must be an object with the `__typename` of an entity here, and its `id`. The SDL of this subgraph ' +
  'names the entities.';

function notFoundHere({ type }: Entity): string {
  return `No ${type.name} can be found by its id here: its key is \`resolvable: false\`. Ask another subgraph.`;
}

function wrongId(entity: Entity): string {
  return `The id of a ${entity.type.name} must be of the type ${entity.idType.name}, and this one is not.`;
}

function tooMany() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `One operation may refer to ${MAX_REFERENCES} records, those of all its fields together. Split it into several.`,
  );
}

const UNION = '_Entity';

/** Returns what selections on a union of the gateway, which the service does not know, select for one of its types. */
function selectionsOn(
  { schema }: Shared,
  { fragments }: PreparedOperation,
  type: string,
  selections: readonly SelectionNode[],
): readonly SelectionNode[] {
  const typeNamed = (name: string) => schema.getType(name) as GraphQLCompositeType;
  const on = (all: readonly SelectionNode[]): readonly SelectionNode[] =>
    all.flatMap((selection): readonly SelectionNode[] => {
      if (selection.kind === Kind.FIELD) return [selection];
      const isInline = selection.kind === Kind.INLINE_FRAGMENT;
      const fragment = isInline ? selection : fragments.get(selection.name.value)!;
      const condition = fragment.typeCondition?.name.value ?? UNION;
      if (!doTypesOverlap(schema, typeNamed(type), typeNamed(condition))) return [];
      if (condition !== UNION) return [selection];
      const inner = on(fragment.selectionSet.selections);
      return inner.length > 0 ? [fragmentNode(undefined, inner, selection.directives)] : [];
    });
  return on(selections);
}
