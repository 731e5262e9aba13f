import {
  buildClientSchema,
  getIntrospectionQuery,
  getNamedType,
  GraphQLError,
  isLeafType,
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
  /** A list of the service, such as `persons`, or one of the fields that are derived from it. */
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
  /** Reads records behind the cursor `$after`. */
  readonly window: (first: number) => string;
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
  const { name, after, record } = schema ? listIn(schema, field) : usualList(field);
  const selection = fields ?? plainFields(record);
  const keys = keysOf(selection);
  const call = (first: number) =>
    `query Export($after: String) { ${LIST_KEY}: ${name}(${after}: $after first: ${first} ${args}\n)`;
  // Reads no record. A mistake must not cost what an interrupted export has left.
  const mistakeIn = async (node: string) => {
    const checked = `${call(1)} @include(if: false) { nodes ${node} } }`;
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
    window: (first) =>
      `${call(first)} { edges { cursor node ${node} } pageInfo { hasNextPage } } }`,
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
  const { data, errors } = await gateway.send(query, {}, signal);
  if (errors?.[0]) throw GatewayFailure.of(errors[0]);
  return data;
}

/** The connection of a list. */
interface Connection {
  readonly name: string;
  /** The name of its argument. */
  readonly after: string;
  /** Undefined if the gateway does not show its schema. */
  readonly record: GraphQLNamedType | undefined;
}

/** The names that a list has unless a prefix or an argument of the service gives it others. */
function usualList(field: string): Connection {
  const list = field.replace(/all(?=[A-Z])/i, '').replace(/Connection$/, '');
  const name = `${list.charAt(0).toLowerCase()}${list.slice(1)}Connection`;
  return { name, after: 'after', record: undefined };
}

/** Finds the connection of a list by its name, or by that of the list or of its `all…` field. @throws OperatorMistake */
function listIn(schema: GraphQLSchema, field: string): Connection {
  const root = Object.values(schema.getQueryType()!.getFields());
  const lists = root.flatMap((connection): Connection[] => {
    // Where the service has a filter of this name, the argument of the gateway has another one.
    const after = argumentOf(connection, /^(after|connectionAfter_*)$/);
    const type = getNamedType(connection.type);
    const nodes = hasFields(type) ? type.getFields()['nodes'] : undefined;
    if (after === undefined || !nodes || !connection.name.endsWith(SUFFIX)) return [];
    return [{ name: connection.name, after, record: getNamedType(nodes.type) }];
  });
  const meant =
    lists.find(({ name }) => [name, name.slice(0, -SUFFIX.length)].includes(field)) ??
    lists.find(({ name }) => listNameOf(name) === listNameOf(field));
  if (meant) return meant;
  const names = lists.map(({ name }) => name.slice(0, -SUFFIX.length));
  throw new OperatorMistake(
    lists.length === 0
      ? 'The gateway has no list that can be exported, because none has a connection; `schema explain` says why.'
      : `There is no list ${JSON.stringify(field)} to export. Choose one of these: ${names.join(', ')}.`,
  );
}

const SUFFIX = 'Connection';

/** With SCHEMA_PREFIX, recruitingPersons is drained by recruitingAllPersons. */
function listNameOf(field: string): string {
  return field
    .replace(/all/i, '')
    .replace(/connection$/i, '')
    .toLowerCase();
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
