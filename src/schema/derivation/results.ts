import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isObjectType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';
import { idOf, isPage, typesWithFields, type Result } from '../derived.ts';

/** The types that a union or an interface can have; empty for any other type. */
export function membersOf(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
): readonly GraphQLObjectType[] {
  const result = getNullableType(type);
  return isAbstractType(result) ? schema.getPossibleTypes(result) : [];
}

/**
 * The result that a page or a record is behind; undefined if the field returns it itself, or never. All other types are
 * errors: none of them can mean an empty list, or that there is no such record.
 */
export function resultOf(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
  success: GraphQLObjectType,
): Result | undefined {
  const result = getNullableType(type);
  if (!isAbstractType(result) || !schema.isSubType(result, success)) return undefined;
  const failures = membersOf(schema, type).filter((member) => member !== success);
  return { type: result, success, failures };
}

/**
 * Finds the record that a field returns: itself, or among the types of a result, a union or interface such as
 * `union Person = PersonItem | PersonError`: the only type that pages list; without such a type, the only one that has a
 * plain `id`.
 *
 * @returns undefined if there is no such type, or several
 */
export function recordOf(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
): GraphQLObjectType | undefined {
  const returned = getNullableType(type);
  if (isObjectType(returned)) return returned;
  const members = membersOf(schema, type);
  const onPages = members.length > 0 ? listedTypes(schema) : NONE;
  const listed = members.filter((member) => onPages.has(member));
  const [record, ...others] = (listed.length > 0 ? listed : members).filter((each) => idOf(each));
  return others.length === 0 ? record : undefined;
}

const NONE: ReadonlySet<GraphQLNamedType> = new Set();

/** A text for `schema explain`. */
export function describeResult({ type, success, failures }: Result): string {
  const errors = failures.map(({ name }) => `; ${name} is an error`);
  return `${success.name} is one of the types of ${type.name}${errors.join('')}.`;
}

/** The types that pages list. */
function listedTypes(schema: GraphQLSchema): ReadonlySet<GraphQLNamedType> {
  const types = typesWithFields(schema)
    .filter((type) => isObjectType(type) && isPage(type))
    .map((page) => getNamedType(page.getFields()['items']!.type))
    .flatMap((type) => [type, ...membersOf(schema, type)]);
  return new Set<GraphQLNamedType>(types);
}
