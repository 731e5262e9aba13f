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
import { isPage, type PagedField } from '../derived.ts';
import { isIdentified } from './identity.ts';

/** A field that returns several records, page by page or not. */
export interface FoundList {
  readonly parent: GraphQLObjectType | GraphQLInterfaceType;
  readonly name: string;
  /** Whether its type has `items` and `pageInfo`. Such a field may still lack something else of a paged field. */
  readonly givesPages: boolean;
  readonly verdict: { readonly paged: PagedField } | { readonly why: string };
}

/** Every list of the schema: those of the query root first, then the others, sorted by type. */
export function findLists(schema: GraphQLSchema): FoundList[] {
  const root = schema.getQueryType();
  const types = Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .filter((type) => !isIntrospectionType(type) && !isPage(type))
    .filter((type) => type !== root && type !== schema.getMutationType())
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [...(root ? [root] : []), ...types].flatMap((parent) =>
    Object.values(parent.getFields())
      .filter(looksLikeList)
      .map((field) => {
        const found = judgeField(field, schema);
        return {
          parent,
          name: field.name,
          givesPages: givesPages(field),
          verdict: typeof found === 'string' ? { why: found } : { paged: found },
        };
      }),
  );
}

function looksLikeList(field: GraphQLField<unknown, unknown>): boolean {
  const type = getNullableType(field.type);
  if (isListType(type)) return isCompositeType(getNamedType(type));
  const takesPages = field.args.some(({ name }) => name === 'first' || name === 'after');
  return takesPages || givesPages(field);
}

function givesPages(field: GraphQLField<unknown, unknown>): boolean {
  const type = getNullableType(field.type);
  return isObjectType(type) && isPage(type);
}

/**
 * Recognizes a paged field by its shape alone:
 * `field(first: Int, after: String, …): { items: […] pageInfo: { hasNextPage endCursor } }`. No other name matters, and
 * the cursor's argument may have another one: see cursorArgument.
 *
 * @returns the reason, as text, if the field is not a paged field
 */
function judgeField(
  field: GraphQLField<unknown, unknown>,
  schema: GraphQLSchema,
): PagedField | string {
  const page = getNullableType(field.type);
  if (!isObjectType(page)) return 'it does not return a page (an object with items and pageInfo)';
  const items = page.getFields()['items'];
  const list = items && getNullableType(items.type);
  if (!items || !isListType(list)) return `its type ${page.name} has no list called items`;
  if (items.args.some(isRequiredArgument)) return `${page.name}.items has required arguments`;
  const nodeType = getNamedType(list.ofType);
  if (!isCompositeType(nodeType) || getNullableType(list.ofType) !== nodeType) {
    return `${page.name}.items is not a list of objects`;
  }
  const missing = missingOfPageInfo(page);
  if (missing) return missing;
  const first = field.args.find(({ name }) => name === 'first');
  if (!first || getNullableType(first.type) !== GraphQLInt) return 'it has no argument first: Int';
  const after = cursorArgument(field);
  if (typeof after === 'string') return after;
  const filters = field.args.filter((argument) => argument !== first && argument !== after);
  return {
    name: field.name,
    field,
    first,
    after,
    filters,
    itemsType: items.type,
    recordType: list.ofType,
    nodeType,
    identity: hasIds(nodeType, schema) ? [['id']] : [],
    count: COUNTS.find((name) => isCount(page.getFields()[name])),
  };
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
 * @returns the reason, as text, if there is none
 */
function cursorArgument({ args }: GraphQLField<unknown, unknown>): GraphQLArgument | string {
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
  return `it has no argument after: String, and each of ${names} may be the one for the cursor`;
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
