import {
  TypeInfo,
  visitWithTypeInfo,
  buildClientSchema,
  GraphQLError,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  isCompositeType,
  isInterfaceType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
  isUnionType,
  Kind,
  parse,
  print,
  visit,
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type IntrospectionQuery,
  type SelectionSetNode,
} from 'graphql';
import { OperatorMistake } from '../errors.ts';
import { fieldsByKey, type Fragments } from '../selections.ts';
import { GatewayFailure, type Gateway } from './gateway.ts';

interface ExportSelection {
  /** A list of the service, such as `persons`, or its `all…` field. */
  readonly field: string;
  /** As in GraphQL, such as `id firstName`; undefined: all fields that need neither a selection nor an argument. */
  readonly fields: string | undefined;
  /** The filters of the list, as in GraphQL, such as `status: OPEN`. */
  readonly args: string | undefined;
}

/** The operation that exports a list. */
export interface ExportOperation {
  /** The name of the `all…` field. */
  readonly list: string;
  /** @param limit the number of records; undefined: all */
  text(limit: number | undefined): string;
  /**
   * @param first the number of records; undefined: a page of the service
   * @returns an operation for the same records as edges of a connection; undefined without a connection
   */
  window(first: number | undefined): string | undefined;
  /** The response keys of a record. */
  readonly keys: readonly string[];
  /** Fields of which only the first page is exported if they are paged lists, which is not known without a schema. */
  readonly perhapsCut: readonly string[];
}

/** The key of the list in the answer. */
export const LIST_KEY = 'records';
/** The key of the id in each record, which is always selected. */
export const ID_KEY = '_exportId';

/**
 * Makes the operation from the gateway's schema. If introspection is off, as in production, `fields` is required.
 *
 * @throws OperatorMistake, GatewayFailure
 */
export async function exportOperation(
  { field, fields, args }: ExportSelection,
  gateway: Gateway,
  signal: AbortSignal,
): Promise<ExportOperation> {
  // Before the first request, so that a typing error is reported at once.
  if (fields !== undefined) selectionOf(field, fields, args);
  const lists = await readLists(gateway, signal);
  const list = lists && chooseList(field, lists);
  if (!list && fields === undefined) throw new OperatorMistake(NO_SCHEMA);
  const name = list?.name ?? usualName(field);
  const names = list?.names ?? USUAL_ARGUMENTS;
  const connection = list ? list.connection : usualConnection(field);
  const selection = selectionOf(name, fields ?? list!.selection, args, names);
  const hasId = list?.hasId ?? (await answersId(name, gateway, signal));
  if (list) checkPagedLists(selection, list.record, list.schema);
  const record = print(selection).replace('{', hasId ? `{ ${ID_KEY}: id` : '{');
  await checkValid(`${name}${args === undefined ? '' : `(${args})`}`, record, gateway, signal);
  const filters = args === undefined ? [] : [args];
  return {
    list: name,
    keys: keysOf(selection),
    perhapsCut: list ? [] : perhapsPaged(selection),
    text: (limit) => {
      const size = limit === undefined ? [] : [`${names.limit}: ${limit}`];
      return queryOf(
        `${name}(${[...filters, `${names.after}: $after`, ...size].join(', ')}) @stream ${record}`,
      );
    },
    window: (first) => {
      if (!connection) return undefined;
      const size = first === undefined ? [] : [`first: ${first}`];
      const all = [...filters, `${connection.after}: $after`, ...size].join(', ');
      return queryOf(
        `${connection.name}(${all}) { edges { cursor node ${record} } pageInfo { hasNextPage } }`,
      );
    },
  };
}

function queryOf(list: string): string {
  return `query Export($after: String) { ${LIST_KEY}: ${list} }`;
}

const NO_SCHEMA =
  'The gateway does not show its schema, so the fields of a record are not known here. Name them with ' +
  '--fields "id …", or have the operator set INTROSPECTION=on.';

/** Parses the options. @throws OperatorMistake unless they are a list, its filters and the selection of its records */
function selectionOf(
  field: string,
  fields: string,
  args: string | undefined,
  names?: PagingArguments,
): SelectionSetNode {
  if (!/^\w+$/.test(field)) throw new OperatorMistake(NOT_A_LIST);
  const filters = args === undefined ? undefined : argsOf(args);
  const paging = filters?.find(
    ({ name }) => name.value === names?.after || name.value === names?.limit,
  );
  if (paging) {
    throw new OperatorMistake(
      `--args takes the filters of the list. Remove ${paging.name.value}, which an export sets itself.`,
    );
  }
  const form = `It is written as in GraphQL: --fields "id title company { name }".`;
  if (/^\s*\{[^]*\}\s*$/.test(fields)) {
    throw new OperatorMistake(`--fields has braces around all fields. Remove these. ${form}`);
  }
  return onlyField('--fields', `{ list {`, fields, `} }`, form).selectionSet!;
}

function argsOf(args: string): readonly ArgumentNode[] {
  const form = `It is written as in GraphQL: --args 'status: OPEN'.`;
  return onlyField('--args', `{ list(`, args, `) }`, form).arguments!;
}

const NOT_A_LIST =
  'The list to export is given by its name only, such as persons. Its fields follow in --fields, and its filters in --args.';

/**
 * Parses the text of an option as a part of the only field of an operation.
 *
 * @param before and `after`: what makes an operation of the text
 * @param form a sentence with an example
 * @throws OperatorMistake that names the position in the text
 */
function onlyField(
  option: string,
  before: string,
  text: string,
  after: string,
  form: string,
): FieldNode {
  const start = before.length + 1;
  const refuse = (why: string) => new OperatorMistake(`${option} cannot be read${why} ${form}`);
  if (text.trim() === '') throw refuse(': it is empty.');
  let document: DocumentNode;
  try {
    document = parse(`${before}\n${text}\n${after}`);
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    const rest = text.slice(error.positions![0]! - start);
    throw refuse(
      rest.trim() === ''
        ? ' at its end. Check that each bracket has its counterpart, and that nothing is missing.'
        : ` at ${JSON.stringify(rest.slice(0, 20))}. ${error.message.replace('Syntax Error: ', '')}`,
    );
  }
  visit(document, {
    FragmentSpread: ({ name }) => {
      throw refuse(`: named fragments such as ${name.value} cannot be used.`);
    },
    Variable: ({ name }) => {
      throw refuse(`: variables such as $${name.value} cannot be used.`);
    },
  });
  const [operation] = document.definitions;
  const fields =
    operation?.kind === Kind.OPERATION_DEFINITION ? operation.selectionSet.selections : [];
  const [field] = fields;
  // A text that closes a bracket of `before` is more than a part of the field.
  const isWhole = field?.kind === Kind.FIELD && field.loc!.end >= start + text.length;
  if (!isWhole || fields.length > 1 || document.definitions.length > 1) {
    throw refuse(': it closes a bracket that it did not open.');
  }
  return field;
}

/** Refuses paged lists without a number of elements, of which only the first page would be exported. @throws OperatorMistake */
function checkPagedLists(
  selection: SelectionSetNode,
  record: GraphQLCompositeType,
  schema: GraphQLSchema,
): void {
  const types = new TypeInfo(schema, record);
  /** For each field around the current one, the complaint if it is a paged list; undefined for one with a size. */
  const around: (string | undefined)[] = [];
  const enter = (node: FieldNode) => {
    const parent = types.getParentType();
    const type = types.getType();
    const complaint = around.at(-1);
    const isElements = type && isListType(getNullableType(type));
    if (isElements && parent && fieldType(parent, 'pageInfo') && complaint !== undefined) {
      throw new OperatorMistake(`--fields: ${complaint}`);
    }
    const hasSize = node.arguments?.some(({ name }) => SIZE.test(name.value));
    around.push(hasSize ? undefined : onlyFirstPage(node.name.value, types));
  };
  const leave = () => void around.pop();
  visit(selection, visitWithTypeInfo(types, { Field: { enter, leave } }));
}

const SIZE = /^(?:first|last|limit)$|size$/i;

function onlyFirstPage(name: string, types: TypeInfo): string {
  const parent = types.getParentType();
  const all =
    parent &&
    fieldsOf(parent).find(
      (field) => field.name !== name && withoutAll(field.name) === name.toLowerCase(),
    );
  const size = types.getFieldDef()?.args.find((argument) => SIZE.test(argument.name));
  const ways = [
    all && `take all of it with ${all.name} { … }`,
    size && `say how many elements to take, such as ${name}(${size.name}: 50)`,
  ].filter((way) => typeof way === 'string');
  const advice = ways.join(', or ') || 'leave it out';
  return `only the first page of ${name} would be exported. ${advice.charAt(0).toUpperCase()}${advice.slice(1)}.`;
}

/** Guesses, without a schema, the names of paged lists without a number of elements. */
function perhapsPaged(selection: SelectionSetNode): string[] {
  const names = new Set<string>();
  const Field = (field: FieldNode) => {
    const selected = field.selectionSet?.selections ?? [];
    const hasElements = selected.some(
      (each) => each.kind === Kind.FIELD && ['items', 'edges'].includes(each.name.value),
    );
    const hasSize = field.arguments?.some(({ name }) => SIZE.test(name.value));
    if (hasElements && !hasSize) names.add(field.name.value);
  };
  visit(selection, { Field });
  return [...names];
}

/** Has the gateway check the selection and the filters. Reads no record. @throws OperatorMistake, GatewayFailure */
async function checkValid(
  list: string,
  record: string,
  gateway: Gateway,
  signal: AbortSignal,
): Promise<void> {
  try {
    await gateway.ask(`{ ${list} @include(if: false) ${record} }`, signal);
  } catch (error) {
    if (!(error instanceof GatewayFailure)) throw error;
    // Several operations with fewer records each may be accepted.
    if (error.code === 'OPERATION_TOO_COMPLEX') return;
    if (error.code !== 'BAD_USER_INPUT') throw error;
    const [, value] = /non-enum value: "(\w+)"/.exec(error.message) ?? [];
    const advice = value === undefined ? '' : ` Write ${value} without quotes.`;
    throw new OperatorMistake(`${error.message}${advice} Correct --fields or --args.`, {
      cause: error,
    });
  }
}

/** Whether the records have an id. Reads no record. */
async function answersId(name: string, gateway: Gateway, signal: AbortSignal): Promise<boolean> {
  try {
    await gateway.ask(`{ ${name} @include(if: false) { id } }`, signal);
    return true;
  } catch (error) {
    if (error instanceof GatewayFailure && error.isInvalid) return false;
    throw error;
  }
}

function keysOf({ selections }: SelectionSetNode): string[] {
  return [...fieldsByKey(selections, NO_FRAGMENTS).keys()];
}

const NO_FRAGMENTS: Fragments = new Map();

/** An `all…` field of a gateway. */
interface ExportableList {
  readonly name: string;
  readonly record: GraphQLCompositeType;
  readonly schema: GraphQLSchema;
  /** As in GraphQL, the fields of a record that need neither a selection nor an argument. */
  readonly selection: string;
  readonly hasId: boolean;
  readonly names: PagingArguments;
  /** The connection of the same records; undefined if there is none. */
  readonly connection: ConnectionField | undefined;
}

interface ConnectionField {
  readonly name: string;
  /** The name of its argument `after`. */
  readonly after: string;
}

/** The names of the arguments that the gateway adds to an `all…` field. */
interface PagingArguments {
  readonly after: string;
  readonly limit: string;
}

const USUAL_ARGUMENTS: PagingArguments = { after: 'after', limit: 'limit' };

/** @returns undefined if the gateway does not show its schema */
async function readLists(
  gateway: Gateway,
  signal: AbortSignal,
): Promise<readonly ExportableList[] | undefined> {
  const query = getIntrospectionQuery({ descriptions: false });
  const data = await gateway.ask(query, signal).catch((error: unknown) => {
    if (error instanceof GatewayFailure && error.isInvalid) return undefined;
    throw error;
  });
  if (!data) return undefined;
  const schema = buildClientSchema(JSON.parse(data.raw) as IntrospectionQuery);
  const lists = fieldsOf(schema.getQueryType()!);
  return lists.flatMap(({ name, args, type }): ExportableList[] => {
    const record = getNamedType(type);
    // The arguments of the gateway come first. Where the service has a filter `limit`, they have other names.
    const named = (pattern: RegExp) => args.find((argument) => pattern.test(argument.name))?.name;
    const [after, limit] = [named(/^(after|drainAfter_*)$/), named(/^(limit|drainLimit_*)$/)];
    const isList = isListType(getNullableType(type));
    if (!after || !limit || !isList || !isCompositeType(record)) return [];
    const selection = plainSelection(record, schema);
    const hasId = plainFields(record).some((field) => field.name === 'id');
    const connection = connectionOf(name, record, lists);
    return [{ name, record, schema, selection, hasId, names: { after, limit }, connection }];
  });
}

function connectionOf(
  list: string,
  record: GraphQLNamedType,
  fields: readonly Field[],
): ConnectionField | undefined {
  const connections = fields.filter(({ type }) => {
    const edge = fieldType(getNamedType(type), 'edges');
    return edge !== undefined && fieldType(edge, 'node') === record;
  });
  const plain = withoutAll(list);
  const usual = connections.find(({ name }) => name.toLowerCase() === `${plain}connection`);
  // Both may have been given other names in adapters.json.
  const connection = usual ?? (connections.length === 1 ? connections[0] : undefined);
  const after = connection?.args.find(({ name }) => /^(after|connectionAfter_*)$/.test(name));
  return connection && after && { name: connection.name, after: after.name };
}

function fieldType(type: GraphQLNamedType, name: string): GraphQLNamedType | undefined {
  const field = fieldsOf(type).find((each) => each.name === name);
  return field && getNamedType(field.type);
}

/** With SCHEMA_PREFIX, recruitingPersons is drained by recruitingAllPersons. */
function withoutAll(name: string): string {
  return name.replace(/all/i, '').toLowerCase();
}

/** Finds a list by the name of its `all…` field, or of the list of the service. @throws OperatorMistake */
function chooseList(field: string, lists: readonly ExportableList[]): ExportableList {
  const meant =
    lists.find(({ name }) => name === field) ??
    lists.find(({ name }) => withoutAll(name) === field.toLowerCase());
  if (!meant) {
    const names = lists.map(({ name }) => name).join(', ');
    throw new OperatorMistake(
      lists.length === 0
        ? 'The gateway has no list that can be exported; `schema explain` says why.'
        : `There is no list ${JSON.stringify(field)} to export. Choose one of these: ${names}.`,
    );
  }
  return meant;
}

function plainSelection(record: GraphQLCompositeType, schema: GraphQLSchema): string {
  if (!isUnionType(record)) return namesOf(plainFields(record)) || '__typename';
  const members = schema.getPossibleTypes(record);
  const all = members.flatMap(plainFields);
  const parts = members.map((member) => {
    // Types that differ between the members would make the operation invalid.
    const fields = plainFields(member).filter(({ name, type }) =>
      all.every((other) => other.name !== name || String(other.type) === String(type)),
    );
    return fields.length > 0 ? ` ... on ${member.name} { ${namesOf(fields)} }` : '';
  });
  return `__typename${parts.join('')}`;
}

function namesOf(fields: readonly Field[]): string {
  return fields.map(({ name }) => name).join(' ');
}

/** The fields that need neither a selection nor an argument. */
function plainFields(type: GraphQLNamedType): readonly Field[] {
  return fieldsOf(type).filter(
    (field) => isLeafType(getNamedType(field.type)) && !field.args.some(isRequiredArgument),
  );
}

function fieldsOf(type: GraphQLNamedType): readonly Field[] {
  if (!isObjectType(type) && !isInterfaceType(type)) return [];
  return Object.values(type.getFields()).filter(
    ({ deprecationReason }) => deprecationReason == null,
  );
}

type Field = GraphQLField<unknown, unknown>;

/** The name that the `all…` field of a list has, unless adapters.json or a prefix gives it another. */
function usualName(field: string): string {
  return /^all|All[A-Z]/.test(field)
    ? field
    : `all${field.charAt(0).toUpperCase()}${field.slice(1)}`;
}

/** The connection of a list whose gateway does not show its schema. */
function usualConnection(field: string): ConnectionField {
  const plain = field.replace(/^all(?=[A-Z])/, '').replace(/All(?=[A-Z])/, '');
  return { name: `${plain.charAt(0).toLowerCase()}${plain.slice(1)}Connection`, after: 'after' };
}
