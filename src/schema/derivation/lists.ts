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
  GraphQLBoolean,
  isLeafType,
  isListType,
  isRequiredArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  GraphQLID,
  GraphQLInt,
  isCompositeType,
  type GraphQLArgument,
  type GraphQLInputType,
} from 'graphql';
import {
  idOf,
  isPage,
  mayBePage,
  objectTypesOf,
  typesWithFields,
  type FieldPath,
  type PagedField,
  type Result,
  type TypeWithFields,
} from '../derived.ts';
import type { FieldOverride, Overrides } from './overrides.ts';

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
  if (listed.length > 0) return single(listed.filter(idOf));
  return single(members.filter((member) => idOf(member) && !isError(member)));
}

/** @param record one of its types; records of another kind or form in it mean the same as null */
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
  return { type: result, success: record, failures, others };
}

/** The types of a result that are pages. */
function pagesIn(schema: GraphQLSchema, type: GraphQLOutputType): GraphQLObjectType[] {
  return membersOf(schema, type).filter(isPage);
}

/** All types other than the page are errors: none of them can mean an empty list. */
function resultOfPage(
  schema: GraphQLSchema,
  type: GraphQLOutputType,
  page: GraphQLObjectType,
): Result {
  const failures = membersOf(schema, type).filter((member) => member !== page);
  return {
    type: getNullableType(type) as GraphQLAbstractType,
    success: page,
    failures,
    others: [],
  };
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

/** The types that a union or an interface can have; empty for any other type. */
function membersOf(schema: GraphQLSchema, type: GraphQLOutputType): readonly GraphQLObjectType[] {
  const result = getNullableType(type);
  return isAbstractType(result) ? schema.getPossibleTypes(result) : [];
}

/**
 * Whether a type is an error: by its name or that of one of its interfaces, or because it has a `message` and no `id`.
 */
function isError(type: GraphQLObjectType): boolean {
  if ([type, ...type.getInterfaces()].some(({ name }) => ERROR_NAME.test(name))) return true;
  const { id, message } = type.getFields();
  return (
    id === undefined && message !== undefined && getNullableType(message.type) === GraphQLString
  );
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

function single<T>(all: readonly T[]): T | undefined {
  return all.length === 1 ? all[0] : undefined;
}

/** Whether the records of a type have all of these values. */
export function isIdentified(type: GraphQLCompositeType, fields: readonly FieldPath[]): boolean {
  return (
    isObjectType(type) &&
    fields.every(([name]) => name !== undefined && whyNotIdentifying(type, name) === undefined)
  );
}

/** Why a field cannot identify a record; undefined if it can. */
export function whyNotIdentifying(type: GraphQLObjectType, name: string): string | undefined {
  const field = type.getFields()[name];
  if (!field) return `${type.name} has no field ${name}.`;
  if (field.args.some(isRequiredArgument)) return `${name} has required arguments.`;
  const value = getNullableType(field.type);
  if (isListType(value)) return `${name} is a list.`;
  if (!isLeafType(value)) return `${name} is not a scalar.`;
  return value === GraphQLBoolean ? `${name} is a Boolean.` : undefined;
}

/** A field that returns several records, page by page or not. */
export interface FoundList {
  /** For example `Query.persons`. */
  readonly coordinate: string;
  readonly parent: TypeWithFields;
  /** Whether its type, or one of the types of its result, has `items` and `pageInfo`. Such a field may still lack something else of a paged field. */
  readonly givesPages: boolean;
  /** Otherwise the reason, as text, why it is not a paged field. */
  readonly verdict: PagedField | string;
}

/**
 * Every list of the schema: those of the query root first, then the others, sorted by type.
 *
 * @param overrides from adapters.json, by field
 */
export function findLists(schema: GraphQLSchema, overrides: Overrides['fields'] = {}): FoundList[] {
  const root = schema.getQueryType();
  const types = typesWithFields(schema)
    .filter((type) => !isPage(type) && type !== root && type !== schema.getMutationType())
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [...(root ? [root] : []), ...types].flatMap((parent) =>
    Object.values(parent.getFields())
      .filter((field) => looksLikeList(field, schema))
      .map((field) => {
        const coordinate = `${parent.name}.${field.name}`;
        const verdict = judgeField(coordinate, field, schema, overrides[coordinate]);
        return { coordinate, parent, givesPages: givesPages(field, schema), verdict };
      }),
  );
}

function looksLikeList(field: GraphQLField<unknown, unknown>, schema: GraphQLSchema): boolean {
  const type = getNullableType(field.type);
  if (isListType(type)) return isCompositeType(getNamedType(type));
  const takesPages = field.args.some(({ name }) => name === 'first' || name === 'after');
  return takesPages || givesPages(field, schema);
}

function givesPages({ type }: GraphQLField<unknown, unknown>, schema: GraphQLSchema): boolean {
  const page = getNullableType(type);
  return !isListType(page) && mayBePage(schema, page);
}

/**
 * Recognizes a paged field by its shape alone:
 * `field(first: Int, after: String, …): { items: […] pageInfo: { hasNextPage endCursor } }`. No other name matters, and
 * the cursor's argument may have another one: see cursorArgument.
 *
 * The field may also return a union or interface of which exactly one type is a page.
 *
 * @param override names the argument with the cursor, if detection would choose another
 * @returns the reason, as text, if the field is not a paged field
 */
function judgeField(
  list: string,
  field: GraphQLField<unknown, unknown>,
  schema: GraphQLSchema,
  override: FieldOverride = {},
): PagedField | string {
  const page = pageOf(field, schema);
  if (typeof page === 'string') return page;
  const items = page.getFields()['items'];
  const records = items && getNullableType(items.type);
  if (!items || !isListType(records)) return `its type ${page.name} has no list called items`;
  if (items.args.some(isRequiredArgument)) return `${page.name}.items has required arguments`;
  const nodeType = getNamedType(records.ofType);
  if (!isCompositeType(nodeType) || getNullableType(records.ofType) !== nodeType) {
    return `${page.name}.items is not a list of objects`;
  }
  const missing = missingOfPageInfo(page);
  if (missing) return missing;
  const first = field.args.find(({ name }) => name === 'first');
  if (!first || getNullableType(first.type) !== GraphQLInt) return 'it has no argument first: Int';
  const after = cursorArgument(list, field, override.after);
  if (typeof after === 'string') return after;
  const filters = field.args.filter((argument) => argument !== first && argument !== after);
  return {
    name: field.name,
    field,
    first,
    after,
    filters,
    pageType: page,
    result: isObjectType(getNullableType(field.type))
      ? undefined
      : resultOfPage(schema, field.type, page),
    itemsType: items.type,
    recordType: records.ofType,
    nodeType,
    identity: hasIds(nodeType, schema) ? [['id']] : [],
    count: undefined,
  };
}

function pageOf(
  { type }: GraphQLField<unknown, unknown>,
  schema: GraphQLSchema,
): GraphQLObjectType | string {
  const page = getNullableType(type);
  if (isObjectType(page)) return page;
  const pages = pagesIn(schema, type);
  return (
    single(pages) ??
    (pages.length === 0
      ? 'it does not return a page (an object with items and pageInfo)'
      : `several types of ${String(page)} are pages: ${pages.join(', ')}`)
  );
}

export function isCount(field: GraphQLField<unknown, unknown> | undefined): boolean {
  return (
    field !== undefined &&
    getNullableType(field.type) === GraphQLInt &&
    !field.args.some(isRequiredArgument)
  );
}

/** Whether at least one type of the list has ids. Records without an id are located by the records around them. */
function hasIds(nodeType: GraphQLCompositeType, schema: GraphQLSchema): boolean {
  return objectTypesOf(schema, nodeType).some((type) => isIdentified(type, [['id']]));
}

/**
 * Finds the argument with the cursor: `after`, or else the only nullable String whose name contains `after` or `cursor`,
 * such as `afterCursor`. An argument for the other direction, such as `beforeCursor`, does not count.
 *
 * @param named the argument that adapters.json names
 * @returns the reason, as text, if there is no such argument
 */
function cursorArgument(
  list: string,
  { args }: GraphQLField<unknown, unknown>,
  named: string | undefined,
): GraphQLArgument | string {
  if (named !== undefined) {
    const chosen = args.find(({ name }) => name === named);
    if (chosen && isCursorType(chosen.type) && !isRequiredArgument(chosen)) return chosen;
    return `${named}, which adapters.json names, is not an optional argument for a cursor`;
  }
  const after = args.find(({ name }) => name === 'after');
  if (after && isCursorType(after.type)) {
    if (!isRequiredArgument(after)) return after;
    return 'its argument after is required, so the first page cannot be requested';
  }
  const candidates = args.filter(
    ({ name, type }) =>
      type === GraphQLString && /after|cursor/i.test(name) && !/before/i.test(name),
  );
  const [candidate] = candidates;
  if (candidates.length === 1) return candidate!;
  return candidate
    ? `each of ${candidates.map(({ name }) => name).join(', ')} may be its argument for the cursor. Write in adapters.json which ` +
        `one is, such as "fields": { "${list}": { "after": "${candidate.name}" } }`
    : `it has no argument after: String, nor one of another name for a cursor; only ${CURSORS} can be passed on`;
}

function missingOfPageInfo(page: GraphQLObjectType): string | undefined {
  const pageInfo = getNullableType(page.getFields()['pageInfo']?.type);
  if (!isObjectType(pageInfo)) return `its type ${page.name} has no pageInfo`;
  const { hasNextPage, endCursor } = pageInfo.getFields();
  if (!hasNextPage || getNullableType(hasNextPage.type) !== GraphQLBoolean) {
    return `${pageInfo.name} has no hasNextPage: Boolean`;
  }
  if (!endCursor) return `${pageInfo.name} has no endCursor`;
  if (!isCursorType(endCursor.type)) {
    return `${pageInfo.name}.endCursor has the type ${String(endCursor.type)}, and only ${CURSORS} can be passed on`;
  }
  return undefined;
}

/** A custom scalar may be a number or an object in JSON. */
function isCursorType(type: GraphQLInputType | GraphQLOutputType): boolean {
  const named = getNullableType(type);
  return named === GraphQLString || named === GraphQLID;
}

const CURSORS = 'cursors of type String or ID';
