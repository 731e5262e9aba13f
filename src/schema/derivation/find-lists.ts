import {
  getNamedType,
  getNullableType,
  GraphQLBoolean,
  GraphQLFloat,
  GraphQLInt,
  GraphQLString,
  isAbstractType,
  isCompositeType,
  isInterfaceType,
  isIntrospectionType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
  isScalarType,
  type GraphQLArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { isPage, mayBePage, type FieldOverride, type PagedField } from '../derived.ts';
import { pagesIn, resultOfPage } from './find-results.ts';
import { isIdentified } from './identity.ts';

/** A field that returns several records, page by page or not. */
export interface FoundList {
  readonly parent: GraphQLObjectType | GraphQLInterfaceType;
  readonly name: string;
  /** Whether its type, or one of the types of its result, has `items` and `pageInfo`. Such a field may still lack something else of a paged field. */
  readonly givesPages: boolean;
  readonly verdict: { readonly paged: PagedField } | { readonly why: string };
}

/**
 * Every list of the schema: those of the query root first, then the others, sorted by type.
 *
 * @param overrides by field: see adapter-overrides.ts
 */
export function findLists(
  schema: GraphQLSchema,
  overrides: ReadonlyMap<string, FieldOverride> = new Map(),
): FoundList[] {
  const root = schema.getQueryType();
  const types = Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .filter((type) => !isIntrospectionType(type) && !isPage(type))
    .filter((type) => type !== root && type !== schema.getMutationType())
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [...(root ? [root] : []), ...types].flatMap((parent) =>
    Object.values(parent.getFields())
      .filter((field) => looksLikeList(field, schema))
      .map((field) => {
        const list = `${parent.name}.${field.name}`;
        const found = judgeField(list, field, schema, overrides.get(list));
        return {
          parent,
          name: field.name,
          givesPages: givesPages(field, schema),
          verdict: typeof found === 'string' ? { why: found } : { paged: found },
        };
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
 * @param override what adapters.json says is the page, and the argument with the cursor
 * @returns the reason, as text, if the field is not a paged field
 */
function judgeField(
  list: string,
  field: GraphQLField<unknown, unknown>,
  schema: GraphQLSchema,
  override: FieldOverride = {},
): PagedField | string {
  const page = pageOf(list, field, schema, override.member);
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
    count: COUNTS.find((name) => isCount(page.getFields()[name])),
  };
}

function pageOf(
  list: string,
  { type }: GraphQLField<unknown, unknown>,
  schema: GraphQLSchema,
  member: string | undefined,
): GraphQLObjectType | string {
  const page = getNullableType(type);
  if (isObjectType(page)) return page;
  const pages = pagesIn(schema, type);
  const names = pages.map(({ name }) => name).join(', ');
  const chosen = member === undefined ? pages : pages.filter(({ name }) => name === member);
  const [only, ...others] = chosen;
  if (only && others.length === 0) return only;
  if (pages.length === 0) {
    return 'it does not return a page (an object with items and pageInfo)';
  }
  return only
    ? `several types of ${String(page)} are pages: ${names}. Write in adapters.json which one is read, such as ` +
        `"fields": { "${list}": { "member": "${only.name}" } }`
    : `${member} is not a page of ${String(page)}, as ${names} is`;
}

/** The usual names of a page's field with the number of records of all pages. */
const COUNTS = ['totalCount', 'total', 'count'];

export function isCount(field: GraphQLField<unknown, unknown> | undefined): boolean {
  return (
    field !== undefined &&
    getNullableType(field.type) === GraphQLInt &&
    !field.args.some(isRequiredArgument)
  );
}

/** In a list of several types, those without an id have only the records of the others around them. */
function hasIds(nodeType: GraphQLCompositeType, schema: GraphQLSchema): boolean {
  const types = isAbstractType(nodeType) ? schema.getPossibleTypes(nodeType) : [nodeType];
  return types.some((type) => isIdentified(type, [['id']]));
}

/**
 * Finds the argument with the cursor: `after`, or else the only nullable String whose name contains `after` or `cursor`,
 * such as `afterCursor`. One for the other direction, such as `beforeCursor`, does not count.
 *
 * @param named the one that adapters.json names
 * @returns the reason, as text, if there is none
 */
function cursorArgument(
  list: string,
  { args }: GraphQLField<unknown, unknown>,
  named: string | undefined,
): GraphQLArgument | string {
  if (named !== undefined) {
    const chosen = args.find(({ name }) => name === named);
    if (chosen && isCursorType(chosen.type) && !isRequiredArgument(chosen)) return chosen;
    return `${named}, which adapters.json names, is no optional argument that can have a cursor`;
  }
  const after = args.find(({ name }) => name === 'after');
  if (after && isCursorType(after.type)) {
    if (!isRequiredArgument(after)) return after;
    return 'its argument after is required, so the first page cannot be requested';
  }
  const [found, ...others] = args.filter(
    ({ name, type }) =>
      type === GraphQLString && /after|cursor/i.test(name) && !/before/i.test(name),
  );
  if (!found) return 'it has no argument after: String, nor one of another name for a cursor';
  if (others.length === 0) return found;
  const names = [found, ...others].map(({ name }) => name).join(', ');
  return (
    `it has no argument after: String, and each of ${names} may be the one for the cursor. Write in adapters.json which ` +
    `one is, such as "fields": { "${list}": { "after": "${found.name}" } }`
  );
}

function missingOfPageInfo(page: GraphQLObjectType): string | undefined {
  const pageInfo = getNullableType(page.getFields()['pageInfo']?.type);
  if (!isObjectType(pageInfo)) return `its type ${page.name} has no pageInfo`;
  const { hasNextPage, endCursor } = pageInfo.getFields();
  if (!hasNextPage || getNullableType(hasNextPage.type) !== GraphQLBoolean) {
    return `${pageInfo.name} has no hasNextPage: Boolean`;
  }
  if (!endCursor || !isLeafType(getNullableType(endCursor.type))) {
    return `${pageInfo.name} has no endCursor`;
  }
  return undefined;
}

function isCursorType(type: GraphQLInputType): boolean {
  const named = getNullableType(type);
  return isScalarType(named) && !NO_CURSORS.has(named.name);
}

const NO_CURSORS = new Set([GraphQLInt.name, GraphQLFloat.name, GraphQLBoolean.name]);
