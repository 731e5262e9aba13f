import {
  buildClientSchema,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  isCompositeType,
  isListType,
  print,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';
import { means, OperatorMistake } from '../errors.ts';
import { fieldsByKey } from '../selections.ts';
import { GatewayFailure, type Gateway } from './gateway.ts';
import {
  checkFilters,
  cutLists,
  fieldsOf,
  onlyFirstPage,
  plainFields,
  selectionOf,
  typeOf,
  type Field,
} from './selection.ts';

/** What is exported, as it was typed. */
interface Chosen {
  /** A list of the service, such as `persons`, or its `all…` field. */
  readonly field: string;
  /** As in GraphQL, such as `id firstName`; undefined: all fields that need neither a selection nor an argument. */
  readonly fields?: string | undefined;
  /** The filters of the list, as in GraphQL, such as `status: OPEN`. */
  readonly args?: string | undefined;
}

/** A list with the operations that read it. Each takes the cursor `$after`, and answers with the key LIST_KEY. */
export interface ExportedList {
  /** The name of the `all…` field. */
  readonly name: string;
  /** The response keys of a record. */
  readonly keys: readonly string[];
  /** Fields of which only the first page is exported if they are paged lists, which is not known without a schema. */
  readonly perhapsCut: readonly string[];
  /** @param limit the number of records; Infinity: all */
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
  { field, fields, args }: Chosen,
  gateway: Gateway,
  signal: AbortSignal,
): Promise<ExportedList> {
  // Before the first request, so that a typing error is reported at once.
  if (!/^\w+$/.test(field)) throw new OperatorMistake(NOT_A_LIST);
  if (args !== undefined) checkFilters(args);
  const typed = fields === undefined ? undefined : selectionOf(fields);
  const schema = await schemaOf(gateway, signal);
  const list = schema ? chosenList(field, schema) : usualList(field);
  const selection = typed ?? selectionOf(plainFields(list.record));
  const cut = cutLists(selection, list.record, schema);
  if (schema && cut[0] !== undefined) throw onlyFirstPage(cut[0]);
  const call = (name: string, ...more: readonly string[]) =>
    `query Export($after: String) { ${LIST_KEY}: ${name}(${[...(args === undefined ? [] : [args]), ...more].join(', ')})`;
  const after = `${list.after}: $after`;
  // Reads no record.
  const check = (record: string) => {
    const query = `${call(list.name, after, `${list.limit}: 1`)} @include(if: false) ${record} }`;
    return dataOf(gateway, query, signal);
  };
  await check(print(selection)).catch(explain);
  const hasId = await check('{ id }').then(() => true, isInvalid);
  const record = print(selection).replace('{', hasId ? `{ ${ID_KEY}: id` : '{');
  const { connection } = list;
  return {
    name: list.name,
    keys: [...fieldsByKey(selection.selections, new Map()).keys()],
    perhapsCut: cut,
    stream: (limit) => {
      const size = limit === Infinity ? [] : [`${list.limit}: ${limit}`];
      return `${call(list.name, after, ...size)} @stream ${record} }`;
    },
    window:
      connection &&
      ((first) =>
        `${call(connection.name, `${connection.after}: $after`, `first: ${first}`)} ` +
        `{ edges { cursor node ${record} } pageInfo { hasNextPage } } }`),
  };
}

const NOT_A_LIST =
  'The list to export is given by its name only, such as persons. Its fields follow in --fields, and its filters in --args.';
/** The names of a list in the schema of a gateway. */
interface ListNames {
  readonly name: string;
  readonly after: string;
  readonly limit: string;
  readonly connection: { readonly name: string; readonly after: string } | undefined;
  /** Undefined if the gateway does not show its schema. */
  readonly record: GraphQLNamedType | undefined;
}

/** The names that a list has unless adapters.json, a prefix or an argument of the service gives it others. */
function usualList(field: string): ListNames {
  const plain = field.replace(/^all(?=[A-Z])/, '').replace(/All(?=[A-Z])/, '');
  const isAll = /^all|All[A-Z]/.test(field);
  return {
    name: isAll ? field : `all${field.charAt(0).toUpperCase()}${field.slice(1)}`,
    after: 'after',
    limit: 'limit',
    connection: {
      name: `${plain.charAt(0).toLowerCase()}${plain.slice(1)}Connection`,
      after: 'after',
    },
    record: undefined,
  };
}

/** Finds a list by the name of its `all…` field, or of the list of the service. @throws OperatorMistake */
function chosenList(field: string, schema: GraphQLSchema): ListNames {
  const all = fieldsOf(schema.getQueryType()!);
  const lists = all.flatMap((each): ListNames[] => {
    // The arguments of the gateway come first. Where the service has a filter `limit`, they have other names.
    const after = argumentOf(each, /^(after|drainAfter_*)$/);
    const limit = argumentOf(each, /^(limit|drainLimit_*)$/);
    const record = getNamedType(each.type);
    const isList = isListType(getNullableType(each.type)) && isCompositeType(record);
    if (!after || !limit || !isList) return [];
    return [{ name: each.name, after, limit, connection: connectionOf(each, all), record }];
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

function connectionOf(list: Field, all: readonly Field[]): ListNames['connection'] {
  const record = getNamedType(list.type);
  const connections = all.filter(({ type }) => {
    const edge = typeOf(getNamedType(type), 'edges');
    return edge && typeOf(edge, 'node') === record;
  });
  const usual = `${withoutAll(list.name)}connection`;
  // Both may have been given other names in adapters.json.
  const connection =
    connections.find(({ name }) => name.toLowerCase() === usual) ??
    (connections.length === 1 ? connections[0] : undefined);
  const after = connection && argumentOf(connection, /^(after|connectionAfter_*)$/);
  return after === undefined ? undefined : { name: connection!.name, after };
}

/** With SCHEMA_PREFIX, recruitingPersons is drained by recruitingAllPersons. */
function withoutAll(name: string): string {
  return name.replace(/all/i, '').toLowerCase();
}

/** @returns undefined if the gateway does not show its schema */
async function schemaOf(gateway: Gateway, signal: AbortSignal): Promise<GraphQLSchema | undefined> {
  try {
    const query = getIntrospectionQuery({ descriptions: false });
    return buildClientSchema((await dataOf(gateway, query, signal)) as never);
  } catch (error) {
    isInvalid(error);
    return undefined;
  }
}

async function dataOf(gateway: Gateway, query: string, signal: AbortSignal): Promise<unknown> {
  for await (const { data, errors } of gateway.send(query, undefined, signal)) {
    if (errors?.[0]) throw GatewayFailure.of(errors[0]);
    return data;
  }
  return undefined;
}

/** @returns false @throws any error but one that says that the operation does not fit the schema, or is not allowed to see it */
function isInvalid(error: unknown): false {
  if (error instanceof GatewayFailure && means(error.reasons.code, 'invalid')) return false;
  throw error;
}

/** @throws OperatorMistake for a selection or filters that the gateway does not accept; other errors */
function explain(error: unknown): void {
  if (!(error instanceof GatewayFailure)) throw error;
  const { message, reasons } = error;
  // Several operations with fewer records each may be accepted.
  if (reasons.code === 'OPERATION_TOO_COMPLEX') return;
  if (reasons.code !== 'BAD_USER_INPUT') throw error;
  const [, value] = /non-enum value: "(\w+)"/.exec(message) ?? [];
  const advice = value === undefined ? '' : ` Write ${value} without quotes.`;
  throw new OperatorMistake(`${message}${advice} Correct --fields or --args.`, { cause: error });
}

function argumentOf(field: Field, name: RegExp): string | undefined {
  return field.args.find((argument) => name.test(argument.name))?.name;
}
