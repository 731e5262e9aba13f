import { Kind, parse, print, visit, type FieldNode, type SelectionSetNode } from 'graphql';
import { OperatorMistake } from '../errors.ts';
import { fieldsByKey, type Fragments } from '../selections.ts';
import {
  chooseList,
  readLists,
  USUAL_ARGUMENTS,
  usualConnection,
  usualName,
  type OwnArguments,
} from './exportable-lists.ts';
import { GatewayFailure } from './gateway-failure.ts';
import type { Gateway } from './gateway.ts';

export interface ExportSelection {
  /** A list of the service, such as `persons`, or its `all…` field. */
  readonly field: string;
  /** As in GraphQL, such as `id firstName`; undefined: all that need neither a selection nor an argument. */
  readonly fields: string | undefined;
  /** The filters of the list as in GraphQL, such as `status: OPEN`. */
  readonly args: string | undefined;
}

/** The operation that exports a list. */
export interface ExportOperation {
  /** @param limit records that one operation returns; undefined: all */
  text(limit: number | undefined): string;
  /**
   * @param first records that one operation returns; undefined: a page of the service
   * @returns the same records as edges of a connection; undefined if there is none
   */
  window(first: number | undefined): string | undefined;
  /** The response keys of a record. */
  readonly keys: readonly string[];
}

/** The key of the list in the answer. */
export const LIST_KEY = 'records';
/** The key of the id in each record, whatever else is selected. */
export const ID_KEY = '_exportId';

/**
 * Makes the operation from the gateway's schema. Where that is not shown, as in production, the fields have to be given.
 *
 * @throws OperatorMistake, GatewayFailure
 */
export async function exportOperation(
  { field, fields, args }: ExportSelection,
  gateway: Gateway,
  signal: AbortSignal,
): Promise<ExportOperation> {
  // Before the first request, so that a slip of the pen is reported at once.
  if (fields !== undefined) selectionOf(field, fields, args);
  const lists = await readLists(gateway, signal);
  const list = lists && chooseList(field, lists);
  if (!list && fields === undefined) throw new OperatorMistake(NO_SCHEMA);
  const name = list?.name ?? usualName(field);
  const names = list?.names ?? USUAL_ARGUMENTS;
  const connection = list ? list.connection : usualConnection(field);
  const selection = selectionOf(name, fields ?? list!.selection, args, names);
  const hasId = list?.hasId ?? (await answersId(name, gateway, signal));
  const record = print(selection).replace('{', hasId ? `{ ${ID_KEY}: id` : '{');
  return {
    keys: keysOf(selection),
    text: (limit) => {
      const most = limit === undefined ? undefined : `${names.limit}: ${limit}`;
      const given = [args, `${names.after}: $after`, most];
      const all = given.filter((one) => one !== undefined).join(', ');
      return `query Export($after: String) { ${LIST_KEY}: ${name}(${all}) @stream ${record} }`;
    },
    window: (first) => {
      if (!connection) return undefined;
      const most = first === undefined ? undefined : `first: ${first}`;
      const all = [args, `${connection.after}: $after`, most]
        .filter((one) => one !== undefined)
        .join(', ');
      return (
        `query Export($after: String) { ${LIST_KEY}: ${connection.name}(${all}) ` +
        `{ edges { cursor node ${record} } pageInfo { hasNextPage } } }`
      );
    },
  };
}

const NO_SCHEMA =
  'The gateway does not show its schema, so the fields of a record are not known here. Name them with ' +
  '--fields "id …", or have the operator set INTROSPECTION=on.';

/** @throws OperatorMistake unless it is arguments of one field, and the selection of its records */
function selectionOf(
  field: string,
  fields: string,
  args: string | undefined,
  names?: OwnArguments,
): SelectionSetNode {
  const node = onlyField(`{ ${field}${args === undefined ? '' : `(${args})`} { ${fields} } }`);
  if (!node?.selectionSet) throw new OperatorMistake(NOT_GRAPHQL);
  const own = node.arguments?.find(
    ({ name }) => name.value === names?.after || name.value === names?.limit,
  );
  if (own) {
    throw new OperatorMistake(
      `--args takes the filters of the list. Remove ${own.name.value}, which an export sets itself.`,
    );
  }
  return node.selectionSet;
}

const NOT_GRAPHQL =
  'The field, --fields or --args cannot be read. They are written as in GraphQL, without variables and named fragments: ' +
  `export vacancies --fields "id title company { name }" --args 'status: OPEN'.`;

function onlyField(text: string): FieldNode | undefined {
  try {
    const document = parse(text);
    let isPlain = document.definitions.length === 1;
    visit(document, {
      FragmentSpread: () => void (isPlain = false),
      Variable: () => void (isPlain = false),
    });
    const [operation] = document.definitions;
    if (!isPlain || operation?.kind !== Kind.OPERATION_DEFINITION) return undefined;
    const [node, ...others] = operation.selectionSet.selections;
    return node?.kind === Kind.FIELD && others.length === 0 ? node : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the records have an id, found without reading any. */
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
