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
import { selectedFields } from '../engine/selected-fields.ts';
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
/** The keys of the id and the type of each record, which are selected wherever records have an id. */
export const ID_KEY = '_exportId';
export const TYPE_KEY = '_exportType';

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
  const name = field.endsWith(SUFFIX) ? field : `${field}${SUFFIX}`;
  const selection = fields ?? plainFields(await recordOf(name, gateway, signal));
  const keys = keysOf(selection);
  const call = (first: number) =>
    `query Export($after: String) { ${LIST_KEY}: ${name}(after: $after first: ${first} ${args}\n)`;
  // Reads no record. A mistake must not cost what an interrupted export has left.
  const mistakeIn = async (node: string) => {
    const checked = `${call(1)} @include(if: false) { nodes ${node} } }`;
    return dataOf(gateway, checked, signal).then(
      () => undefined,
      (error: unknown) => {
        const code = error instanceof GatewayFailure && error.reasons.code;
        if (code === 'BAD_USER_INPUT') return (error as Error).message;
        throw error;
      },
    );
  };
  const mistake = await mistakeIn(`{ ${selection}\n}`);
  if (mistake !== undefined)
    throw new OperatorMistake(`${mistake} Correct the list, --fields or --args.`);
  const hasId = (await mistakeIn('{ id }')) === undefined;
  const node = `{ ${hasId ? `${ID_KEY}: id ${TYPE_KEY}: __typename ` : ''}${selection}\n}`;
  return {
    keys,
    window: (first) =>
      `${call(first)} { edges { cursor node ${node} } pageInfo { hasNextPage } } }`,
  };
}

/** @throws OperatorMistake for text that is not a selection */
function keysOf(fields: string): string[] {
  try {
    const [only, ...others] = parse(`{${fields}\n}`).definitions;
    if (only?.kind === Kind.OPERATION_DEFINITION && others.length === 0) {
      return selectedFields(only.selectionSet, new Map()).map(({ key }) => key);
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

const SUFFIX = 'Connection';

/**
 * Finds the type of the records of a list.
 *
 * @param connection its name
 * @returns undefined if the gateway does not show its schema
 * @throws OperatorMistake, GatewayFailure
 */
async function recordOf(
  connection: string,
  gateway: Gateway,
  signal: AbortSignal,
): Promise<GraphQLNamedType | undefined> {
  const schema = await schemaOf(gateway, signal);
  if (!schema) return undefined;
  const root = schema.getQueryType()!.getFields();
  const record = nodesOf(root[connection]);
  if (record) return record;
  const lists = Object.values(root).filter((each) => each.name.endsWith(SUFFIX) && nodesOf(each));
  const names = lists.map(({ name }) => name.slice(0, -SUFFIX.length)).join(', ');
  throw new OperatorMistake(
    `There is no list with ${JSON.stringify(connection)} to export. Choose one of these: ${names || 'none; `schema explain` says why'}.`,
  );
}

/** The type of the records of a connection; undefined if the field is none. */
function nodesOf(field: GraphQLField<unknown, unknown> | undefined): GraphQLNamedType | undefined {
  const type = field && getNamedType(field.type);
  const nodes = hasFields(type) ? type.getFields()['nodes'] : undefined;
  return nodes && getNamedType(nodes.type);
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
  if (names.length === 0) throw new OperatorMistake(NAME_FIELDS);
  return names.join(' ');
}

const NAME_FIELDS =
  'The fields of a record are not known: the gateway does not show its schema, as in production, or the records of this list have ' +
  'several types. Name them with --fields "id …".';
