import {
  getNamedType,
  getNullableType,
  GraphQLString,
  isAbstractType,
  isIntrospectionType,
  isObjectType,
  type GraphQLAbstractType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';
import { idOf, isPage, type Result } from '../derived.ts';

/**
 * Finds the record among the types of a result, a union or interface such as `union Person = PersonItem | PersonError`:
 * the only one whose records lists return; if there is none, the only one that has a plain `id` and is no error.
 *
 * @returns undefined if it is none or several
 */
export function recordIn(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
): GraphQLObjectType | undefined {
  const members = membersOf(schema, type);
  const listed = members.filter((member) => listedTypes(schema).has(member));
  if (listed.length > 0) return only(listed.filter(idOf));
  return only(members.filter((member) => idOf(member) && !isError(member)));
}

/**
 * Finds the object among the types of a result through which a path leads: its record, or the only type that is no error.
 */
export function objectIn(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
): GraphQLObjectType | undefined {
  return recordIn(schema, type) ?? only(objectsIn(schema, type));
}

/** The types of a result that are no errors. */
export function objectsIn(schema: GraphQLSchema, type: GraphQLOutputType): GraphQLObjectType[] {
  return membersOf(schema, type).filter(
    (member) => listedTypes(schema).has(member) || !isError(member),
  );
}

/** @param record one of its types; others may be records of another kind or form, for which null stands */
export function resultOfRecord(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
  record: GraphQLObjectType,
): Result | undefined {
  const result = getNullableType(type);
  if (!isAbstractType(result) || !schema.isSubType(result, record)) return undefined;
  const isListed = (member: GraphQLObjectType) => listedTypes(schema).has(member);
  const { failures = [], others = [] } = Object.groupBy(
    membersOf(schema, type).filter((member) => member !== record),
    (member) => (!isListed(member) && isError(member) ? 'failures' : 'others'),
  );
  return { type: result, wanted: record, failures, others };
}

/** The types of a result that are pages. */
export function pagesIn(schema: GraphQLSchema, type: GraphQLOutputType): GraphQLObjectType[] {
  return membersOf(schema, type).filter(isPage);
}

/** All other types than the page are errors: none of them can stand for an empty list. */
export function resultOfPage(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
  page: GraphQLObjectType,
): Result {
  const failures = membersOf(schema, type).filter((member) => member !== page);
  return { type: getNullableType(type) as GraphQLAbstractType, wanted: page, failures, others: [] };
}

/** A text for `schema explain`. @param failure what becomes of the types that are errors */
export function describeResult(
  { type, wanted, failures, others }: Result,
  failure: string,
): string {
  const parts = [
    `${wanted.name} is one of the types of ${type.name}`,
    ...failures.map(({ name }) => `${name} is ${failure}`),
    ...others.map(({ name }) => `${name} is null`),
  ];
  return `${parts.join('; ')}.`;
}

/** The types that a union or an interface can have; none for any other type. */
function membersOf(schema: GraphQLSchema, type: GraphQLOutputType): readonly GraphQLObjectType[] {
  const result = getNullableType(type);
  return isAbstractType(result) ? schema.getPossibleTypes(result) : [];
}

/**
 * Whether a type stands for an error: its name, or that of one of its interfaces, says so, or it has a `message` and no
 * `id`.
 */
function isError(type: GraphQLObjectType): boolean {
  if ([type, ...type.getInterfaces()].some(({ name }) => namesError(name))) return true;
  const { id, message } = type.getFields();
  return (
    id === undefined && message !== undefined && getNullableType(message.type) === GraphQLString
  );
}

function namesError(name: string): boolean {
  const words = name.split(/_|(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/);
  return words.some((word) => ERROR_WORDS.test(word)) || /not_?(found|allowed)/i.test(name);
}

const ERROR_WORDS =
  /^(errors?|err|failures?|failed|faults?|problems?|exceptions?|invalid|forbidden|unauthori[sz]ed|unauthenticated|denied|refused|rejected|rejection|violations?|missing)$/i;

const listed = new WeakMap<GraphQLSchema, ReadonlySet<GraphQLNamedType>>();

/** The types of which there are pages. */
function listedTypes(schema: GraphQLSchema): ReadonlySet<GraphQLNamedType> {
  const known = listed.get(schema);
  if (known) return known;
  const types = Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type) && !isIntrospectionType(type) && isPage(type))
    .map((page) => getNamedType((page as GraphQLObjectType).getFields()['items']!.type))
    .flatMap((type) => [type, ...membersOf(schema, type as GraphQLOutputType)]);
  const found = new Set(types);
  listed.set(schema, found);
  return found;
}

function only<T>(all: readonly T[]): T | undefined {
  return all.length === 1 ? all[0] : undefined;
}
