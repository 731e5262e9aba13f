import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { idOf, typesWithFields, type ByIdField, type Reach } from '../derived.ts';
import type { Overrides } from './overrides.ts';
import { recordIn, resultOfRecord } from './results.ts';

type AnyField = GraphQLField<unknown, unknown>;

/**
 * Decides how a parent is requested again; returns the reason, as text, if it cannot be: by a root field that returns it
 * by its id, or if it is the only object of its type, by the fields that lead to it.
 */
export function reachParent(
  schema: GraphQLSchema,
  parent: GraphQLObjectType,
  types: Overrides['types'],
): Reach | string {
  const byId = byIdField(schema, parent, types);
  if (byId) return byId;
  const path = pathToOnly(schema, parent);
  if (path) return { kind: 'path', steps: path };
  const { name } = parent;
  return (
    `further pages cannot be requested, because no root field returns a ${name} by its id alone. ` +
    `If one does, write it in adapters.json: "types": { "${name}": { "byId": "…" } }.`
  );
}

/** A text for `schema explain`. */
export function describeReach(reach: Reach): string {
  return reach.kind === 'id' ? `${reach.field}(${reach.argument.name}: …)` : reach.steps.join('.');
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
  const result = resultOfRecord(schema, field.type, type);
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
  return getNullableType(type) === record || resultOfRecord(schema, type, record) !== undefined;
}

/** The fields without arguments from the root to an object that nothing else returns; undefined if there may be others. */
function pathToOnly(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  seen: readonly GraphQLObjectType[] = [],
): readonly string[] | undefined {
  if (type === schema.getQueryType()) return [];
  const ways = typesWithFields(schema).flatMap((parent) =>
    Object.values(parent.getFields())
      .filter((field) => mayReturn(schema, field, type))
      .map((field) => ({ parent, field })),
  );
  const [way, ...others] = ways;
  if (!way || others.length > 0 || seen.includes(type)) return undefined;
  const { parent, field } = way;
  const returned = getNullableType(field.type);
  if (!isObjectType(parent) || returned !== type || field.args.length > 0) return undefined;
  const before = pathToOnly(schema, parent, [...seen, type]);
  return before && [...before, field.name];
}

/** Whether a field can return an object of the type, or several. */
function mayReturn(schema: GraphQLSchema, field: AnyField, type: GraphQLObjectType): boolean {
  const named = getNamedType(field.type);
  return named === type || (isAbstractType(named) && schema.isSubType(named, type));
}
