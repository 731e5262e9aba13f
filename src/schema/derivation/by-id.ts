import {
  getNullableType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { idOf, typesWithFields, type ByIdField } from '../derived.ts';
import type { Overrides } from './overrides.ts';
import { recordOf, resultOf } from './results.ts';

type AnyField = GraphQLField<unknown, unknown>;

/** The root fields that return objects by their ids, by the type of the object. */
export type ByIdFields = ReadonlyMap<GraphQLObjectType, ByIdField>;

/**
 * Finds the root fields that return an object of a type by its id, itself or as a result: for each type the one that
 * adapters.json names, or one that requires only `id`, of the type of its own `id`.
 */
export function byIdFields(schema: GraphQLSchema, overrides: Overrides['types']): ByIdFields {
  const fields = Object.values(schema.getQueryType()?.getFields() ?? {});
  const records = new Map(fields.map((field) => [field, recordOf(schema, field.type)]));
  const found = typesWithFields(schema)
    .filter((type) => isObjectType(type))
    .flatMap((type) => {
      const id = idOf(type);
      const named = overrides[type.name]?.byId;
      if (!id || named === null) return [];
      const isItself = (field: AnyField) => getNullableType(field.type) === type;
      const isById = (field: AnyField) =>
        records.get(field) === type && takesOnlyId(field, getNullableType(id.type));
      const field =
        named === undefined
          ? bestOf(fields.filter(isById), isItself)
          : fields.find(({ name }) => name === named);
      const argument = field && idArgument(field);
      const result = field && resultOf(schema, field.type, type);
      if (!argument || !(isItself(field) || result)) return [];
      return [[type, { kind: 'id', field: field.name, argument, result }] as const];
    });
  return new Map(found);
}

function takesOnlyId({ args }: AnyField, id: unknown): boolean {
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
function idArgument({ args }: AnyField): GraphQLArgument | undefined {
  const [required, ...more] = args.filter(isRequiredArgument);
  const argument = required ?? args.find(({ name }) => name === 'id');
  return more.length === 0 && argument && isLeafType(getNullableType(argument.type))
    ? argument
    : undefined;
}
