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
  /** Streams the records behind the cursor `$after`. @param limit the number of records; Infinity: all */
  readonly stream: (limit: number) => string;
  /** Reads the same records from their connection; undefined if they have none. */
  readonly window: ((first: number) => string) | undefined;
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
  const { name, after, limit, connection, record } = schema
    ? listIn(schema, field)
    : usualList(field);
  const selection = fields ?? plainFields(record);
  const keys = keysOf(selection);
  const call = (of: string, more: string) =>
    `query Export($after: String) { ${LIST_KEY}: ${of}(${more} ${args}\n)`;
  // Reads no record. A mistake must not cost what an interrupted export has left.
  const mistakeIn = async (node: string) => {
    const checked = `${call(name, `${after}: $after ${limit}: 1`)} @include(if: false) ${node} }`;
    return dataOf(gateway, checked, signal).then(
      () => undefined,
      (error: unknown) => {
        const code = error instanceof GatewayFailure && error.reasons.code;
        if (code === 'BAD_USER_INPUT') return (error as Error).message;
        if (code !== 'FORBIDDEN') throw error;
        throw new OperatorMistake(`${(error as Error).message} ${LEAVE_OUT}`);
      },
    );
  };
  const mistake = await mistakeIn(`{ ${selection}\n}`);
  if (mistake !== undefined) throw new OperatorMistake(`${mistake} Correct --fields or --args.`);
  const hasId = (await mistakeIn('{ id }')) === undefined;
  const node = `{ ${hasId ? `${ID_KEY}: id ` : ''}${selection}\n}`;
  return {
    keys,
    stream: (size) => {
      const records = size === Infinity ? '' : `${limit}: ${size}`;
      return `${call(name, `${after}: $after ${records}`)} @stream ${node} }`;
    },
    window:
      connection &&
      ((first) =>
        `${call(connection.name, `${connection.after}: $after first: ${first}`)} ` +
        `{ edges { cursor node ${node} } pageInfo { hasNextPage } } }`),
  };
}

const LEAVE_OUT = 'Or select other fields with --fields.';

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
  try {
    return buildClientSchema((await dataOf(gateway, query, signal)) as never);
  } catch (error) {
    if (error instanceof GatewayFailure && means(error.reasons.code, 'invalid')) return undefined;
    throw error;
  }
}

async function dataOf(gateway: Gateway, query: string, signal: AbortSignal): Promise<unknown> {
  for await (const { data, errors } of gateway.send(query, {}, signal)) {
    if (errors?.[0]) throw GatewayFailure.of(errors[0]);
    return data;
  }
  return undefined;
}

/** The fields of a list, and their arguments. */
interface ListFields {
  /** Of the `all…` field. */
  readonly name: string;
  readonly after: string;
  readonly limit: string;
  readonly connection: { readonly name: string; readonly after: string } | undefined;
  /** Undefined if the gateway does not show its schema. */
  readonly record: GraphQLNamedType | undefined;
}

/** The names that a list has unless a prefix or an argument of the service gives it others. */
function usualList(field: string): ListFields {
  const list = field.replace(/^all(?=[A-Z])/, '').replace(/All(?=[A-Z])/, '');
  const isAll = list !== field;
  return {
    name: isAll ? field : `all${field.charAt(0).toUpperCase()}${field.slice(1)}`,
    after: 'after',
    limit: 'limit',
    connection: {
      name: `${list.charAt(0).toLowerCase()}${list.slice(1)}Connection`,
      after: 'after',
    },
    record: undefined,
  };
}

/** Finds a list by the name of its `all…` field, or of the list of the service. @throws OperatorMistake */
function listIn(schema: GraphQLSchema, field: string): ListFields {
  const root = Object.values(schema.getQueryType()!.getFields());
  const lists = root.flatMap((all): ListFields[] => {
    // The arguments of the gateway come first. Where the service has a filter `limit`, they have other names.
    const after = argumentOf(all, /^(after|drainAfter_*)$/);
    const limit = argumentOf(all, /^(limit|drainLimit_*)$/);
    const record = getNamedType(all.type);
    const isList = isListType(getNullableType(all.type)) && isCompositeType(record);
    if (after === undefined || limit === undefined || !isList) return [];
    const usual = `${withoutAll(all.name)}connection`;
    const found = root.find(({ name }) => name.toLowerCase() === usual);
    const cursor = found && argumentOf(found, /^(after|connectionAfter_*)$/);
    const connection = cursor === undefined ? undefined : { name: found!.name, after: cursor };
    return [{ name: all.name, after, limit, connection, record }];
  });
  const meant =
    lists.find(({ name }) => name === field) ??
    lists.find(({ name }) => withoutAll(name) === field.toLowerCase());
  if (meant) return meant;
  throw new OperatorMistake(
    lists.length === 0
      ? 'The gateway has no list that can be exported; `schema explain` says why.'
      : `There is no list ${JSON.stringify(field)} to export. Choose one of these: ${lists.map(({ name }) => name).join(', ')}.`,
  );
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
