import {
  getNamedType,
  getNullableType,
  GraphQLBoolean,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  isCompositeType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLObjectType,
  type GraphQLSchema,
  type GraphQLType,
} from 'graphql';
import {
  describeResult,
  idOf,
  isPage,
  mayBePage,
  objectTypesIn,
  objectTypesOf,
  resultOf,
  type Adapter,
  type AnyField,
  type Notes,
  type PagedField,
} from '../derived.ts';
import type { ServedNames } from '../names.ts';
import type { Overrides } from './overrides.ts';
import type { ByIdFields } from './records.ts';

interface Deciding {
  readonly overrides: Overrides['fields'];
  /** By which the parents of nested lists are requested again. */
  readonly byId: ByIdFields;
  readonly names: ServedNames;
}

/**
 * Decides what is derived from every list of the schema. If the upstream already has a field of that name, the field is
 * not derived, and a warning says so.
 *
 * @param schema the upstream under served names, so with `PageInfo` already renamed
 */
export function deriveLists(
  schema: GraphQLSchema,
  deciding: Deciding,
  { reports, warnings }: Notes,
): readonly Adapter[] {
  const { names } = deciding;
  const taken = new Set<string>();
  return listsIn(schema).flatMap(([parent, field]) => {
    const subject = `${parent.name}.${field.name}`;
    const paged = judge(schema, parent, field, deciding);
    if (typeof paged === 'string') {
      reports.push({ subject, facts: {}, why: [`${paged}.`] });
      return [];
    }
    const { reach } = paged;
    const clashes: string[] = [];
    /** Returns the name under which a field is derived; undefined if it is taken. */
    const free = (usualName: string) => {
      const name = reach ? usualName : names.rootField(usualName);
      const place = `${parent.name}.${name}`;
      const isTaken = taken.has(place) || name in parent.getFields();
      if (isTaken) clashes.push(`${place} is not derived: a field of that name already exists.`);
      taken.add(place);
      return isTaken ? undefined : { field: name };
    };
    const usual = reach ? paged.name : names.unprefixedField(paged.name);
    const all = free(`all${usual.charAt(0).toUpperCase()}${usual.slice(1)}`);
    const isIdentified = paged.identity !== undefined;
    const types = isIdentified ? connectionTypes(paged, schema, names) : undefined;
    if (isIdentified && !types) {
      clashes.push(`${paged.nodeType.name} has no connection: the service has types of its names.`);
    }
    const named = types && free(`${usual}Connection`);
    const connection = named && { ...named, ...types };
    warnings.push(...clashes);
    reports.push({
      subject,
      facts: {
        all: all?.field,
        connection: connection && `${connection.field} (${connection.type}, ${connection.edge})`,
        parent: reach && `reached again by ${reach.field}(${reach.argument.name}: …)`,
      },
      why: [...reasons(subject, paged), ...clashes],
    });
    return [{ ...paged, all, connection }];
  });
}

/** The fields that return several records, page by page or not: of the query root first, then of the others by name. */
function listsIn(schema: GraphQLSchema) {
  const root = schema.getQueryType()!;
  const others = objectTypesIn(schema).filter(
    (type) => !isPage(type) && type !== root && type !== schema.getMutationType(),
  );
  return [root, ...others].flatMap((parent) =>
    Object.values(parent.getFields())
      .filter((field) => looksLikeList(field, schema))
      .map((field) => [parent, field] as const),
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
function judge(
  schema: GraphQLSchema,
  parent: GraphQLObjectType,
  field: AnyField,
  { overrides, byId }: Deciding,
): PagedField | string {
  const coordinate = `${parent.name}.${field.name}`;
  const override = overrides[coordinate] ?? {};
  const [page, ...otherPages] = objectTypesOf(schema, field.type).filter(isPage);
  if (otherPages.length > 0) {
    return `several types of ${String(field.type)} are pages: ${[page, ...otherPages].join(', ')}`;
  }
  const records = page && recordsOf(page);
  if (!records) return `it does not return a page: ${PAGE}`;
  const first = field.args.find(({ name }) => name === 'first');
  if (!first || getNullableType(first.type) !== GraphQLInt) return 'it has no argument first: Int';
  const after = cursorArgument(coordinate, field, override.after);
  if (typeof after === 'string') return after;
  const others = field.args.filter((argument) => argument !== first && argument !== after);
  const clash = others.find(
    (each) => OWN_ARGUMENTS.includes(each.name) && isRequiredArgument(each),
  );
  if (clash) return `its required argument ${clash.name} is called as one of the gateway`;
  const { identity, count } = override;
  const types = objectTypesOf(schema, records.nodeType);
  if (identity !== undefined && !types.every((type) => idOf(type, identity))) {
    return `${identity}, which adapters.json names, is not a scalar field of ${records.nodeType.name}`;
  }
  if (count !== undefined && !isCount(page.getFields()[count])) {
    return `${page.name} has no field ${count}: Int, which adapters.json names`;
  }
  if (override.skip) return 'adapters.json skips it';
  const reach = byId.get(parent);
  if (!reach && parent !== schema.getQueryType()) return unreachable(parent.name);
  return {
    parent: parent.name,
    name: field.name,
    field,
    first,
    after,
    filters: others.filter(({ name }) => !OWN_ARGUMENTS.includes(name)),
    pageType: page,
    result: resultOf(schema, field.type, page),
    ...records,
    // Records without an id are located by the records around them.
    identity: identity ?? (types.some((type) => idOf(type)) ? 'id' : undefined),
    count,
    page: override.page,
    reach,
  };
}

function unreachable(parent: string): string {
  return (
    `further pages cannot be requested, because no root field returns a ${parent} by its id alone. ` +
    `If one does, write it in adapters.json: "types": { "${parent}": { "byId": "…" } }`
  );
}

/** Those of derived fields. A filter of the service with such a name is left out of them. */
const OWN_ARGUMENTS = ['limit', 'after', 'last', 'before'];

const PAGE =
  '{ items: [objects] pageInfo: { hasNextPage: Boolean endCursor: String } }. Only cursors of type String or ID can be passed on';

/** The types of the records of a page; undefined if its fields are not those of a page. */
function recordsOf(page: GraphQLObjectType) {
  const { items, pageInfo } = page.getFields();
  const list = getNullableType(items!.type);
  const info = getNullableType(pageInfo!.type);
  if (!isListType(list) || !isObjectType(info)) return undefined;
  const nodeType = getNullableType(list.ofType);
  if (!isCompositeType(nodeType) || items!.args.some(isRequiredArgument)) return undefined;
  const { hasNextPage, endCursor } = info.getFields();
  const isPaged =
    getNullableType(hasNextPage?.type) === GraphQLBoolean && isCursorType(endCursor?.type);
  return isPaged ? { itemsType: items!.type, recordType: list.ofType, nodeType } : undefined;
}

/** A custom scalar may be a number or an object in JSON, which cannot be passed on as it is. */
function isCursorType(type: GraphQLType | undefined): boolean {
  const nullable = getNullableType(type);
  return nullable === GraphQLString || nullable === GraphQLID;
}

function isCount(field: AnyField | undefined): boolean {
  return getNullableType(field?.type) === GraphQLInt && !field!.args.some(isRequiredArgument);
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
  if (after && isCursorType(after.type) && !isRequiredArgument(after)) return after;
  if (named !== undefined) {
    return `${named}, which adapters.json names, is not an optional argument for a cursor`;
  }
  const [candidate, ...others] = args.filter(
    ({ name, type }) =>
      type === GraphQLString && /after|cursor/i.test(name) && !/before/i.test(name),
  );
  if (!candidate)
    return 'it has no optional argument after: String, nor another one for a cursor of type String';
  if (others.length === 0) return candidate;
  return (
    `each of ${[candidate, ...others].map(({ name }) => name).join(', ')} may be its argument for the cursor. Write in ` +
    `adapters.json which one is, such as "fields": { "${list}": { "after": "${candidate.name}" } }`
  );
}

/**
 * Names the types of a connection after the node, so that all lists of it share them: `PersonConnection`, or
 * `RelayPersonConnection` where the service has a type of that name, for example its page. (Relay recognizes a connection
 * by a name that ends so.)
 */
function connectionTypes({ nodeType }: PagedField, schema: GraphQLSchema, names: ServedNames) {
  const node = names.unprefixed(nodeType.name);
  return [node, `Relay${node}`]
    .map((name) => ({ type: names.type(`${name}Connection`), edge: names.type(`${name}Edge`) }))
    .find(({ type, edge }) => !schema.getType(type) && !schema.getType(edge));
}

function reasons(
  coordinate: string,
  { field, first, after, filters, recordType, nodeType, result, identity }: PagedField,
): string[] {
  const carried = [first, after, ...filters];
  const omitted = field.args.filter((argument) => !carried.includes(argument));
  const kind = isNonNullType(recordType) ? nodeType.name : `${nodeType.name} or null`;
  const withoutIdentity =
    `it has no connection, because ${nodeType.name} has no plain field id, so that a cursor cannot name a record. ` +
    `If another field identifies a record, write it in adapters.json: "fields": { "${coordinate}": { "identity": "…" } }.`;
  return [
    `it takes first and ${after.name}, and returns pages of ${kind}.`,
    ...omitted.map(
      ({ name }) =>
        `its filter ${name} is left out, because an argument of the gateway is called so.`,
    ),
    ...(result ? [describeResult(result)] : []),
    ...(identity === undefined ? [withoutIdentity] : []),
  ];
}
