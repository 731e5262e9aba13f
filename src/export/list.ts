import {
  buildClientSchema,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  GraphQLError,
  isCompositeType,
  isLeafType,
  isListType,
  isRequiredArgument,
  Kind,
  parse,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';
import { means, OperatorMistake } from '../errors.ts';
import { hasFields } from '../schema/derived.ts';
import { fieldsByKey } from '../selections.ts';
import { GatewayFailure, type Gateway } from './gateway.ts';

/** What is exported, as it was typed. */
interface Chosen {
  /** A list of the service, such as `persons`, or its `all…` field. */
  readonly field: string;
  /** As in GraphQL, such as `id firstName`; undefined: all fields that need neither a selection nor an argument. */
  readonly fields?: string | undefined;
  /** The filters of the list, as in GraphQL, such as `status: OPEN`. */
  readonly args?: string | undefined;
}

/** A list with the operation that reads it. */
export interface ExportedList {
  /** The response keys of a record. */
  readonly keys: readonly string[];
  /** Whether it is read in windows of its connection. A list without a connection is read in one piece. */
  readonly hasWindows: boolean;
  /** The operation, with the cursor `$after` for a window. @param size the number of records; Infinity: all */
  readonly operation: (size: number) => string;
}

/** The key of the list in the answer. */
export const LIST_KEY = 'records';
/** The key of the id in each record, which is selected wherever records have one. */
export const ID_KEY = '_exportId';

/**
 * Finds the list in the schema of the gateway. If introspection is off, as in production, `fields` is required.
 *
 * @throws OperatorMistake, GatewayFailure
 */
export async function exportedList(
  { field, fields, args = '' }: Chosen,
  gateway: Gateway,
  signal: AbortSignal,
): Promise<ExportedList> {
  // Before the first request, so that a typing error is reported at once.
  if (!/^\w+$/.test(field)) throw new OperatorMistake(NOT_A_LIST);
  if (fields !== undefined) keysOf(fields);
  const schema = await schemaOf(gateway, signal);
  const { name, after, limit, record } = schema ? listIn(schema, field) : usualList(field);
  const selection = fields ?? plainFields(record);
  const keys = keysOf(selection);
  const operation = (size: number, ids: string, condition = '') => {
    const node = `{ ${ids}${selection}\n}`;
    if (after !== undefined) {
      const call = `${name}(${after}: $after, first: ${size} ${args}\n)`;
      const window = `{ edges { cursor node ${node} } pageInfo { hasNextPage } }`;
      return `query Export($after: String) { ${LIST_KEY}: ${call} ${condition} ${window} }`;
    }
    const inBrackets = `${size === Infinity ? '' : `${limit}: ${size} `}${args}`;
    const call = `${name}${inBrackets && `(${inBrackets}\n)`}`;
    return `query Export { ${LIST_KEY}: ${call} ${condition} ${node} }`;
  };
  // Reads no record. A mistake must not cost what an interrupted export has left.
  const mistakeIn = async (ids: string) => {
    const checked = operation(1, ids, '@include(if: false)');
    const { errors } = await gateway.send(checked, {}, signal);
    const failure = errors?.[0] && GatewayFailure.of(errors[0]);
    if (failure?.reasons.code === 'BAD_USER_INPUT') return failure.message;
    if (failure) throw failure;
    return undefined;
  };
  const mistake = await mistakeIn('');
  if (mistake !== undefined) throw new OperatorMistake(`${mistake} Correct --fields or --args.`);
  const ids = (await mistakeIn(`${ID_KEY}: id `)) === undefined ? `${ID_KEY}: id ` : '';
  return { keys, hasWindows: after !== undefined, operation: (size) => operation(size, ids) };
}

const NOT_A_LIST =
  'The list to export is given by its name only, such as persons. Its fields follow in --fields, and its filters in --args.';

/** @throws OperatorMistake for text that is not a selection */
function keysOf(fields: string): string[] {
  try {
    const [only, ...others] = parse(`{${fields}\n}`).definitions;
    if (only?.kind === Kind.OPERATION_DEFINITION && others.length === 0) {
      return [...fieldsByKey(only.selectionSet.selections, new Map()).keys()];
    }
    throw new GraphQLError('it closes a bracket that it did not open.');
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    throw new OperatorMistake(
      `--fields cannot be read: ${error.message} It is written as in GraphQL, without braces around it: --fields "id title company { name }".`,
    );
  }
}

/** @returns undefined if the gateway does not show its schema */
async function schemaOf(gateway: Gateway, signal: AbortSignal): Promise<GraphQLSchema | undefined> {
  const query = getIntrospectionQuery({ descriptions: false });
  const { data, errors } = await gateway.send(query, {}, signal);
  if (!errors?.[0]) return buildClientSchema(data as never);
  const failure = GatewayFailure.of(errors[0]);
  if (means(failure.reasons.code, 'invalid')) return undefined;
  throw failure;
}

/** The field of a list that is read. */
interface ListSource {
  readonly name: string;
  /** The argument with the cursor; undefined if the field is not a connection. */
  readonly after: string | undefined;
  /** The argument with the number of records of a field that is not a connection. */
  readonly limit?: string | undefined;
  /** Undefined if the gateway does not show its schema. */
  readonly record: GraphQLNamedType | undefined;
}

/** The connection as it is called unless a filter of the service has the name of its argument. */
function usualList(field: string): ListSource {
  const list = field.replace(/^all(?=[A-Z])/, '').replace(/All(?=[A-Z])/, '');
  const name = `${list.charAt(0).toLowerCase()}${list.slice(1)}Connection`;
  return { name, after: 'after', record: undefined };
}

/** Finds a list by the name of its `all…` field, or of the list of the service. @throws OperatorMistake */
function listIn(schema: GraphQLSchema, field: string): ListSource {
  const root = Object.values(schema.getQueryType()!.getFields());
  // The arguments of the gateway come first. Where the service has a filter `limit`, they have other names.
  const lists = root.filter(
    (each) =>
      isListType(getNullableType(each.type)) &&
      isCompositeType(getNamedType(each.type)) &&
      argumentOf(each, /^(after|drainAfter_*)$/) !== undefined,
  );
  const all =
    lists.find(({ name }) => name === field) ??
    lists.find(({ name }) => withoutAll(name) === field.toLowerCase());
  if (!all) {
    throw new OperatorMistake(
      lists.length === 0
        ? 'The gateway has no list that can be exported; `schema explain` says why.'
        : `There is no list ${JSON.stringify(field)} to export. Choose one of these: ${lists.map(({ name }) => name).join(', ')}.`,
    );
  }
  const record = getNamedType(all.type);
  const usual = `${withoutAll(all.name)}connection`;
  const connection = root.find(({ name }) => name.toLowerCase() === usual);
  const after = connection && argumentOf(connection, /^(after|connectionAfter_*)$/);
  if (after !== undefined) return { name: connection!.name, after, record };
  const limit = argumentOf(all, /^(limit|drainLimit_*)$/);
  return { name: all.name, after: undefined, limit, record };
}

/** With SCHEMA_PREFIX, recruitingPersons is drained by recruitingAllPersons. */
function withoutAll(name: string): string {
  return name.replace(/all/i, '').toLowerCase();
}

type Field = GraphQLField<unknown, unknown>;

function argumentOf(field: Field, name: RegExp): string | undefined {
  return field.args.find((argument) => name.test(argument.name))?.name;
}

/**
 * Returns the fields of a record that need neither a selection nor an argument, as in GraphQL.
 *
 * @throws OperatorMistake for a record of several types, and for one whose type is not known
 */
function plainFields(record: GraphQLNamedType | undefined): string {
  const fields = hasFields(record) ? Object.values(record.getFields()) : [];
  const names = fields
    .filter(({ type, args, deprecationReason }) => {
      const isPlain = isLeafType(getNamedType(type)) && !args.some(isRequiredArgument);
      return isPlain && deprecationReason == null;
    })
    .map(({ name }) => name);
  if (names.length === 0) throw new OperatorMistake(record ? NO_FIELDS : NO_SCHEMA);
  return names.join(' ');
}

const NO_FIELDS =
  'The records of this list have several types, or no plain fields. Name what is exported with --fields "…".';
const NO_SCHEMA =
  'The gateway does not show its schema, so the fields of a record are not known here. Name them with ' +
  '--fields "id …", or have the operator set INTROSPECTION=on.';
