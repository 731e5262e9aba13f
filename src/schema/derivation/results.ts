import {
  getNamedType,
  getNullableType,
  GraphQLString,
  isAbstractType,
  isObjectType,
  type GraphQLAbstractType,
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

/** The result that a page is behind. All its other types are errors: none of them can mean an empty list. */
export function resultOfPage(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
  page: GraphQLObjectType,
): Result | undefined {
  const result = getNullableType(type);
  if (result === page) return undefined;
  const failures = membersOf(schema, type).filter((member) => member !== page);
  return { type: result as GraphQLAbstractType, success: page, failures, others: [] };
}

/**
 * Finds the record among the types of a result, a union or interface such as `union Person = PersonItem | PersonError`:
 * the only type that pages list; without such a type, the only one that has a plain `id` and is not an error.
 *
 * @returns undefined if there is no such type, or several
 */
export function recordIn(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
): GraphQLObjectType | undefined {
  const members = membersOf(schema, type);
  const listed = members.filter((member) => listedTypes(schema).has(member));
  const records = listed.length > 0 ? listed : members.filter((member) => !isError(member));
  const [record, ...others] = records.filter(idOf);
  return others.length === 0 ? record : undefined;
}

/** @param record one of its types; records of another kind or form in it mean the same as null */
export function resultOfRecord(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
  record: GraphQLObjectType,
): Result | undefined {
  const result = getNullableType(type);
  if (!isAbstractType(result) || !schema.isSubType(result, record)) return undefined;
  const { failures = [], others = [] } = Object.groupBy(
    membersOf(schema, type).filter((member) => member !== record),
    (member) => (!listedTypes(schema).has(member) && isError(member) ? 'failures' : 'others'),
  );
  return { type: result, success: record, failures, others };
}

/** A text for `schema explain`. @param failure what happens to the types that are errors */
export function describeResult(
  { type, success, failures, others }: Result,
  failure: string,
): string {
  const parts = [
    `${success.name} is one of the types of ${type.name}`,
    ...failures.map(({ name }) => `${name} is ${failure}`),
    ...others.map(({ name }) => `${name} is null`),
  ];
  return `${parts.join('; ')}.`;
}

/**
 * Whether a type is an error: by its name or that of one of its interfaces, or because it has a `message` and no `id`.
 */
function isError(type: GraphQLObjectType): boolean {
  if ([type, ...type.getInterfaces()].some(({ name }) => ERROR_NAME.test(name))) return true;
  const { id, message } = type.getFields();
  return !id && message !== undefined && getNullableType(message.type) === GraphQLString;
}

/** A word of a name, so `DefaultReply` is none: a capital begins it, and no small letter follows. */
const ERROR_NAME =
  /(Error|Failure|Fault|Problem|Exception|Invalid|Forbidden|Unauthori[sz]ed|Unauthenticated|Denied|Refused|Rejected|Rejection|Violation|Missing|NotFound|NotAllowed)s?(?![a-z])/;

const listed = new WeakMap<GraphQLSchema, ReadonlySet<GraphQLNamedType>>();

/** The types that pages list. */
function listedTypes(schema: GraphQLSchema): ReadonlySet<GraphQLNamedType> {
  const known = listed.get(schema);
  if (known) return known;
  const types = typesWithFields(schema)
    .filter((type) => isObjectType(type) && isPage(type))
    .map((page) => getNamedType(page.getFields()['items']!.type))
    .flatMap((type) => [type, ...membersOf(schema, type)]);
  const onPages = new Set<GraphQLNamedType>(types);
  listed.set(schema, onPages);
  return onPages;
}
