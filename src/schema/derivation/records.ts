import {
  getNamedType,
  getNullableType,
  isLeafType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import {
  describeResult,
  idOf,
  isPage,
  objectTypesIn,
  objectTypesOf,
  resultOf,
  type Adapter,
  type AnyField,
  type ByIdField,
  type Entity,
  type EntityLookup,
  type Notes,
} from '../derived.ts';
import { fieldName, type ServedNames } from '../names.ts';
import type { Overrides } from './overrides.ts';

/** The root fields that return objects by their ids, by the type of the object. */
export type ByIdFields = ReadonlyMap<GraphQLObjectType, ByIdField>;

/**
 * Finds the root fields that return an object of a type by its id, itself or as a result: for each type the one that
 * adapters.json names, or one that requires only `id`, of the type of its own `id`.
 */
export function byIdFields(schema: GraphQLSchema, overrides: Overrides['types']): ByIdFields {
  const fields = Object.values(schema.getQueryType()!.getFields());
  const listed = listedTypes(schema);
  const found = new Map<GraphQLObjectType, ByIdField>();
  for (const type of objectTypesIn(schema)) {
    const id = idOf(type);
    const { byId } = overrides[type.name] ?? {};
    if (!id || byId === null) continue;
    const isItself = (field: AnyField) => getNullableType(field.type) === type;
    const isById = (field: AnyField) => {
      const argument = idArgument(field);
      return (
        recordOf(schema, field, listed) === type &&
        argument?.name === 'id' &&
        isRequiredArgument(argument) &&
        getNullableType(argument.type) === getNullableType(id.type)
      );
    };
    const isNamed = ({ name }: AnyField) => name === byId;
    const field = bestOf(fields.filter(byId === undefined ? isById : isNamed), isItself);
    const argument = field && idArgument(field);
    const result = field && resultOf(schema, field.type, type);
    if (argument && (result || isItself(field))) {
      found.set(type, { kind: 'id', field: field.name, argument, result });
    }
  }
  return found;
}

/** The types that pages list. */
function listedTypes(schema: GraphQLSchema): ReadonlySet<GraphQLObjectType> {
  const nodes = objectTypesIn(schema)
    .filter(isPage)
    .map((page) => getNamedType(page.getFields()['items']!.type));
  return new Set(nodes.flatMap((type) => objectTypesOf(schema, type)));
}

/**
 * Finds the record that a field returns: itself, or among the types of a result, a union or interface such as
 * `union Person = PersonItem | PersonError`: the only type that pages list; without such a type, the only one that has a
 * plain `id`.
 */
function recordOf(
  schema: GraphQLSchema,
  { type }: AnyField,
  listed: ReadonlySet<GraphQLObjectType>,
): GraphQLObjectType | undefined {
  const all = objectTypesOf(schema, type);
  const onPages = all.filter((each) => listed.has(each));
  const [record, ...others] = (onPages.length > 0 ? onPages : all).filter((each) => idOf(each));
  return others.length === 0 ? record : undefined;
}

/** The argument of a field that takes an id: the only required argument, or `id` if none is required. */
function idArgument({ args }: AnyField): GraphQLArgument | undefined {
  const [required, ...more] = args.filter(isRequiredArgument);
  const argument = required ?? args.find(({ name }) => name === 'id');
  return more.length === 0 && isLeafType(getNullableType(argument?.type)) ? argument : undefined;
}

/** Of several fields: those that have the type itself come first, then the shortest name, then the alphabet. */
function bestOf<Field extends { readonly name: string }>(
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

interface Deciding {
  readonly adapters: readonly Adapter[];
  readonly byId: ByIdFields;
  readonly names: ServedNames;
}

/**
 * Decides for every object type with a plain `id` how its records are found by id: by the root field that returns the
 * type by its id alone, or in a list of the root without required arguments (see `bestOf`). Otherwise they are not found;
 * other subgraphs may still refer to them.
 */
export function deriveEntities(
  schema: GraphQLSchema,
  { adapters, byId: found, names }: Deciding,
  { reports, warnings }: Notes,
): readonly Entity[] {
  const query = schema.getQueryType()!;
  const lists = adapters.filter(({ reach }) => !reach);
  // A walk remembers records by what identifies them.
  const searchable = lists.filter(
    ({ filters, identity }) => !filters.some(isRequiredArgument) && identity === 'id',
  );
  const taken = new Set([
    ...Object.keys(query.getFields()),
    ...lists.flatMap(({ all, connection }) => [all?.field, connection?.field]),
  ]);
  return identifiedTypes(schema).map((type) => {
    const byId = found.get(type);
    const having = searchable.filter(({ nodeType }) =>
      objectTypesOf(schema, nodeType).includes(type),
    );
    const adapter = byId ? undefined : bestOf(having, ({ nodeType }) => nodeType === type);
    const lookup: EntityLookup | undefined = byId ?? (adapter && { kind: 'list', adapter });
    const name = names.rootField(fieldName(names.unprefixed(type.name)));
    const isDerived = adapter !== undefined || byId?.result !== undefined;
    const isTaken = isDerived && taken.has(name);
    const clash = `${query.name}.${name} is not derived: a field of that name already exists.`;
    // The field by which the record is found may have its name, and return it as a result.
    if (isTaken && byId?.field !== name) warnings.push(clash);
    const field = isDerived && !isTaken ? name : undefined;
    taken.add(field);
    const foundBy = byId ? `${byId.field}(${byId.argument.name}: …)` : adapter?.name;
    const whyById = byId?.result ? describeResult(byId.result) : BY_ID;
    const why = byId ? whyById : adapter ? IN_LIST : NOT_FOUND;
    reports.push({
      subject: type.name,
      facts: {
        entity: foundBy ? `found by ${query.name}.${foundBy}` : 'cannot be found by its id',
        field,
      },
      why: isTaken ? [why, clash] : [why],
    });
    const { type: idType } = byId?.argument ?? idOf(type)!;
    return { type, idType: getNullableType(idType) as GraphQLLeafType, lookup, field };
  });
}

const BY_ID = 'the field returns the type by its id.';
const IN_LIST = 'no root field returns the type by its id alone, and the list needs no arguments.';
const NOT_FOUND =
  'no root field returns the type by its id alone, and it is in no derived list of the root that needs no arguments and is identified by id.';

/** A key may not have arguments (Federation, KEY_FIELDS_HAS_ARGS). */
function identifiedTypes(schema: GraphQLSchema): GraphQLObjectType[] {
  const roots: unknown[] = [schema.getQueryType(), schema.getMutationType()];
  return objectTypesIn(schema).filter(
    (type) => !roots.includes(type) && idOf(type)?.args.length === 0,
  );
}
