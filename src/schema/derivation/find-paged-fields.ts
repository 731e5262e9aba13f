import {
  getNamedType,
  getNullableType,
  GraphQLBoolean,
  GraphQLFloat,
  GraphQLInt,
  isCompositeType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
  isScalarType,
  type GraphQLArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
} from 'graphql';

/** A field whose shape says that it is a list in pages. */
export interface PagedField {
  readonly name: string;
  readonly field: GraphQLField<unknown, unknown>;
  /** The arguments that are not for paging; they are carried over to what is derived. */
  readonly filters: readonly GraphQLArgument[];
  readonly itemsType: GraphQLOutputType;
  /** One element of `items`, with the upstream's nullability. */
  readonly recordType: GraphQLOutputType;
  readonly nodeType: GraphQLCompositeType;
}

/**
 * Tells a list by its shape alone: `field(first: Int, after: String, …): { items: […] pageInfo: { hasNextPage endCursor } }`.
 * Names other than these are the upstream's own business.
 *
 * @returns why it is no list in pages, where it is none
 */
export function judgeField(field: GraphQLField<unknown, unknown>): PagedField | string {
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
  const after = field.args.find(({ name }) => name === 'after');
  if (!after || !isCursorType(after.type)) return 'it has no argument after: String';
  if (isRequiredArgument(after))
    return 'its argument after is required, so no first page can be asked';
  const filters = field.args.filter((argument) => argument !== first && argument !== after);
  return {
    name: field.name,
    field,
    filters,
    itemsType: items.type,
    recordType: list.ofType,
    nodeType,
  };
}

function isCursorType(type: GraphQLInputType): boolean {
  const named = getNullableType(type);
  return isScalarType(named) && !NO_CURSORS.has(named.name);
}

const NO_CURSORS = new Set([GraphQLInt.name, GraphQLFloat.name, GraphQLBoolean.name]);

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
