import { GraphQLError, Kind, parse } from 'graphql';
import { selectedFields } from '../engine/selected-fields.ts';
import { OperatorMistake } from '../errors.ts';
import { GatewayFailure, LIST_KEY, type Gateway } from './gateway.ts';

/** What is exported, as it was typed. */
interface Chosen {
  /** A list of the service, such as `persons`. */
  readonly field: string;
  /** As in GraphQL, such as `id firstName`. */
  readonly fields: string;
  /** The filters of the list, as in GraphQL, such as `status: OPEN`. */
  readonly args?: string | undefined;
}

/** A list with the operation that reads it. */
interface ExportedList {
  /** The response keys of a record. */
  readonly keys: readonly string[];
  /** Reads records behind the cursor `$after`. */
  readonly window: (first: number) => string;
}

/** Records of a list, in its order. */
export interface Page {
  /** Null for a record that the service could not return. */
  readonly records: readonly (Readonly<Record<string, unknown>> | null)[];
  /** The cursor of the last record. */
  readonly after: string;
  /** For each value that the service could not return, and that is null, the reason. */
  readonly faults: readonly string[];
}

/** The keys of the id and the type of each record, which are selected wherever records have an id. */
export const ID_KEY = '_exportId';
export const TYPE_KEY = '_exportType';

/** Finds the list at the gateway. @throws OperatorMistake, GatewayFailure */
export async function exportedList(
  { field, fields, args = '' }: Chosen,
  gateway: Gateway,
): Promise<ExportedList> {
  const keys = keysOf(fields);
  const call = (first: number) =>
    `query Export($after: String) { ${LIST_KEY}: ${field}Connection(after: $after first: ${first} ${args}\n)`;
  // Reads no record. A mistake must not cost what an interrupted export has left.
  const mistakeIn = async (node: string) => {
    const checked = `${call(1)} @include(if: false) { nodes ${node} } }`;
    return gateway.ask(checked).then(
      () => undefined,
      (error: unknown) => {
        const code = error instanceof GatewayFailure && error.reasons.code;
        if (code === 'BAD_USER_INPUT') return (error as Error).message;
        throw error;
      },
    );
  };
  const mistake = await mistakeIn(`{ ${fields}\n}`);
  if (mistake !== undefined)
    throw new OperatorMistake(`${mistake} Correct the list, --fields or --args.`);
  const hasId = (await mistakeIn('{ id }')) === undefined;
  const node = `{ ${hasId ? `${ID_KEY}: id ${TYPE_KEY}: __typename ` : ''}${fields}\n}`;
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

interface ReadOptions {
  readonly gateway: Gateway;
  readonly list: ExportedList;
  /** Undefined: from the start of the list. */
  readonly after: string | undefined;
  /** The number of records that are still needed; Infinity for all. Called before each operation. */
  readonly needed: () => number;
}

/** Records of a window of a connection, the default of CONNECTION_MAX. */
const WINDOW = 500;

/**
 * Reads a list to its end in windows of its connection: where the gateway knows the list, it reads several pages of a
 * window at a time. What it refuses as too much is read in windows that are half as large, until they are answered.
 *
 * @throws GatewayFailure, OperatorMistake
 */
export async function* readPages(options: ReadOptions): AsyncGenerator<Page, void, undefined> {
  const { gateway, list, needed } = options;
  let { after } = options;
  let size = WINDOW;
  while (needed() > 0) {
    let answer: Awaited<ReturnType<Gateway['ask']>>;
    try {
      answer = await gateway.ask(list.window(Math.min(needed(), size)), { after });
    } catch (error) {
      if (!(error instanceof GatewayFailure)) throw error;
      const { code, isTooMuch } = error.reasons;
      // The record of the cursor is gone, so the list is read from the start. What was written is left out again.
      if (code === 'CURSOR_INVALID' && after !== undefined) after = undefined;
      else if (isTooMuch && size > 1) size = Math.floor(size / 2);
      else throw error;
      continue;
    }
    const { window, faults } = answer;
    const last = window.edges.at(-1);
    if (!last) return;
    after = last.cursor;
    yield { records: window.edges.map(({ node }) => node) as Page['records'], after, faults };
    if (!window.pageInfo.hasNextPage) return;
  }
}

/** Returns what identifies a record, as records of two types may have the same id; null if it has none. */
export function idOf(record: Page['records'][number]): string | null {
  const id = record?.[ID_KEY] ?? null;
  return id === null ? null : `${String(record?.[TYPE_KEY])} ${JSON.stringify(id)}`;
}
