import {
  getNullableType,
  isLeafType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { idOf, type ByIdField } from '../derived.ts';
import type { Overrides } from './overrides.ts';
import { recordIn, resultOf } from './results.ts';

type AnyField = GraphQLField<unknown, unknown>;

/** Returns how a parent is requested again: by a root field that returns it by its id. Otherwise the reason, as text. */
export function reachParent(
  schema: GraphQLSchema,
  parent: GraphQLObjectType,
  types: Overrides['types'],
): ByIdField | string {
  const { name } = parent;
  return (
    byIdField(schema, parent, types) ??
    `further pages cannot be requested, because no root field returns a ${name} by its id alone. ` +
      `If one does, write it in adapters.json: "types": { "${name}": { "byId": "…" } }.`
  );
}

/**
 * Finds the root field that returns an object of the type by its id, itself or as a result: the one that adapters.json
 * names, or one that requires only `id`, of the type of its own `id`.
 */
export function byIdField(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  types: Overrides['types'],
): ByIdField | undefined {
  const id = idOf(type);
  const fields = schema.getQueryType()?.getFields() ?? {};
  const named = types[type.name]?.byId;
  if (!id || named === null) return undefined;
  const isItself = (field: AnyField) => getNullableType(field.type) === type;
  const field =
    named === undefined
      ? bestOf(
          Object.values(fields).filter(
            (each) =>
              isById(each, getNullableType(id.type)) &&
              (isItself(each) || recordIn(schema, each.type) === type),
          ),
          isItself,
        )
      : fields[named];
  const argument = field && idArgument(field);
  if (!argument) return undefined;
  const result = resultOf(schema, field.type, type);
  return { kind: 'id', field: field.name, argument, result };
}

function isById({ args }: AnyField, id: unknown): boolean {
  const [argument, ...others] = args.filter(isRequiredArgument);
  return argument?.name === 'id' && others.length === 0 && getNullableType(argument.type) === id;
}

/** Of several fields: those that have the type itself come first, then the shortest name, then the alphabet. */
export function bestOf<Field extends { readonly name: string }>(
  fields: readonly Field[],
  isItself: (field: Field) => boolean,
): Field | undefined {
  return fields.toSorted(
    (a, b) =>
      Number(isItself(b)) - Number(isItself(a)) ||
      a.name.length - b.name.length ||
      (a.name < b.name ? -1 : 1),
  )[0];
}

/** The argument of a field that takes an id: the only required argument, or `id` if none is required. */
export function idArgument({ args }: AnyField): GraphQLArgument | undefined {
  const [required, ...more] = args.filter(isRequiredArgument);
  const argument = required ?? args.find(({ name }) => name === 'id');
  return more.length === 0 && argument && isLeafType(getNullableType(argument.type))
    ? argument
    : undefined;
}

/** Whether a field returns the type, itself or as a result. */
export function canReturn(
  schema: GraphQLSchema,
  { type }: AnyField,
  record: GraphQLObjectType,
): boolean {
  return getNullableType(type) === record || resultOf(schema, type, record) !== undefined;
}
