import {
  getNamedType,
  getNullableType,
  GraphQLBoolean,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  isCompositeType,
  isListType,
  isObjectType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';
import {
  idOf,
  isPage,
  mayBePage,
  objectTypesOf,
  typesWithFields,
  type PagedField,
  type TypeWithFields,
} from '../derived.ts';
import type { FieldOverride, Overrides } from './overrides.ts';
import { membersOf, resultOf } from './results.ts';

type AnyField = GraphQLField<unknown, unknown>;

/** A field that returns several records, page by page or not. */
export interface FoundList {
  /** For example `Query.persons`. */
  readonly coordinate: string;
  readonly parent: TypeWithFields;
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
        return { coordinate, parent, verdict };
      }),
  );
}

function looksLikeList({ type, args }: AnyField, schema: GraphQLSchema): boolean {
  const returned = getNullableType(type);
  if (isListType(returned)) return isCompositeType(getNamedType(returned));
  const takesPages = args.some(({ name }) => name === 'first' || name === 'after');
  return takesPages || mayBePage(schema, returned);
}

/**
 * Recognizes a paged field by its shape alone:
 * `field(first: Int, after: String, …): { items: […] pageInfo: { hasNextPage endCursor } }`. No other name matters, and
 * the cursor's argument may have another one: see cursorArgument. The field may also return a union or an interface of
 * which exactly one type is a page.
 *
 * @returns the reason, as text, if the field is not a paged field
 */
function judgeField(
  list: string,
  field: AnyField,
  schema: GraphQLSchema,
  override: FieldOverride = {},
): PagedField | string {
  const page = pageOf(field, schema);
  if (typeof page === 'string') return page;
  const items = page.getFields()['items'];
  const records = items && getNullableType(items.type);
  if (!items || !isListType(records)) return `its type ${page.name} has no list called items`;
  if (items.args.some(isRequiredArgument)) return `${page.name}.items has required arguments`;
  const nodeType = getNullableType(records.ofType);
  if (!isCompositeType(nodeType)) return `${page.name}.items is not a list of objects`;
  const missing = missingOfPageInfo(page);
  if (missing) return missing;
  const first = field.args.find(({ name }) => name === 'first');
  if (!first || getNullableType(first.type) !== GraphQLInt) return 'it has no argument first: Int';
  const after = cursorArgument(list, field, override.after);
  if (typeof after === 'string') return after;
  const others = field.args.filter((argument) => argument !== first && argument !== after);
  const clashing = others.filter(({ name }) => OWN_ARGUMENTS.includes(name));
  const required = clashing.find(isRequiredArgument);
  if (required) return `its required argument ${required.name} is called as one of the gateway`;
  // Records without an id are located by the records around them.
  const hasIds = objectTypesOf(schema, nodeType).some((type) => idOf(type));
  return {
    name: field.name,
    field,
    first,
    after,
    filters: others.filter((argument) => !clashing.includes(argument)),
    pageType: page,
    result: resultOf(schema, field.type, page),
    itemsType: items.type,
    recordType: records.ofType,
    nodeType,
    identity: override.identity ?? (hasIds ? 'id' : undefined),
    count: override.count,
  };
}

/** Those of derived fields. A filter of the service with such a name is left out of them. */
const OWN_ARGUMENTS = ['limit', 'after', 'last', 'before'];

function pageOf({ type }: AnyField, schema: GraphQLSchema): GraphQLObjectType | string {
  const page = getNullableType(type);
  if (isObjectType(page)) return page;
  const [only, ...others] = membersOf(schema, type).filter(isPage);
  if (!only) return 'it does not return a page (an object with items and pageInfo)';
  if (others.length === 0) return only;
  return `several types of ${String(page)} are pages: ${[only, ...others].join(', ')}`;
}

function missingOfPageInfo(page: GraphQLObjectType): string | undefined {
  const pageInfo = getNullableType(page.getFields()['pageInfo']?.type);
  if (!isObjectType(pageInfo)) return `its type ${page.name} has no pageInfo`;
  const { hasNextPage, endCursor } = pageInfo.getFields();
  if (!hasNextPage || getNullableType(hasNextPage.type) !== GraphQLBoolean) {
    return `${pageInfo.name} has no hasNextPage: Boolean`;
  }
  if (!endCursor) return `${pageInfo.name} has no endCursor`;
  if (isCursorType(endCursor.type)) return undefined;
  return `${pageInfo.name}.endCursor has the type ${String(endCursor.type)}, and only ${CURSORS} can be passed on`;
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
  { args }: AnyField,
  named: string | undefined,
): GraphQLArgument | string {
  const after = args.find(({ name }) => name === (named ?? 'after'));
  const isCursor = after && isCursorType(after.type);
  if (isCursor && !isRequiredArgument(after)) return after;
  if (named !== undefined) {
    return `${named}, which adapters.json names, is not an optional argument for a cursor`;
  }
  if (isCursor) return 'its argument after is required, so the first page cannot be requested';
  const [candidate, ...others] = args.filter(
    ({ name, type }) =>
      type === GraphQLString && /after|cursor/i.test(name) && !/before/i.test(name),
  );
  if (!candidate) {
    return `it has no argument after: String, nor one of another name for a cursor; only ${CURSORS} can be passed on`;
  }
  if (others.length === 0) return candidate;
  return (
    `each of ${[candidate, ...others].map(({ name }) => name).join(', ')} may be its argument for the cursor. Write in ` +
    `adapters.json which one is, such as "fields": { "${list}": { "after": "${candidate.name}" } }`
  );
}

/** A custom scalar may be a number or an object in JSON. */
function isCursorType(type: GraphQLInputType | GraphQLOutputType): boolean {
  const nullable = getNullableType(type);
  return nullable === GraphQLString || nullable === GraphQLID;
}

const CURSORS = 'cursors of type String or ID';

export function isCount(field: AnyField | undefined): boolean {
  return getNullableType(field?.type) === GraphQLInt && !field!.args.some(isRequiredArgument);
}
