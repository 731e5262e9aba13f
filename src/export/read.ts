import { Kind, parse } from 'graphql';
import { fetch, type Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { isJsonObject, parseExactly } from '../engine/json.ts';
import { selectedFields } from '../engine/selected-fields.ts';
import { means, OperatorMistake } from '../errors.ts';

/** The gateway that a list is exported from. */
export interface Gateway {
  /** The address of GraphQL. */
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly http: Dispatcher;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called before each wait. */
  readonly onWait: (message: string, seconds: number) => void;
}

/** A list with the operation that reads it. */
type ExportedList = Awaited<ReturnType<typeof exportedList>>;

/** Records of a list, in its order. */
export interface Page {
  readonly records: readonly ExportedRecord[];
  /** The cursor behind the last record. */
  readonly after: string;
  /** For each value that the service could not return, and that is null, the reason. */
  readonly faults: readonly string[];
}

export interface ExportedRecord {
  /** Identifies the record, as records of two types may have the same id. Null if it has none. */
  readonly id: string | null;
  /** Null for a record that the service could not return. */
  readonly values: Readonly<Record<string, unknown>> | null;
}

/**
 * Finds the list at the gateway.
 *
 * @param chosen a list of the service, and as in GraphQL the fields of a record and the filters of the list
 * @throws Error with a message for the operator
 */
export async function exportedList(
  gateway: Gateway,
  { field, fields, args = '' }: { field: string; fields: string; args?: string | undefined },
) {
  const keys = keysOf(fields);
  const call = (first: number) =>
    `query Export($after: String) { list: ${field}Connection(after: $after first: ${first} ${args}\n)`;
  // Reads no record. A mistake must not cost what an interrupted export has left.
  const mistakeIn = async (node: string) => {
    try {
      await ask(gateway, `${call(1)} @include(if: false) { nodes ${node} } }`);
      return undefined;
    } catch (error) {
      if (error instanceof Failure && error.code === 'BAD_USER_INPUT') return error.message;
      throw error;
    }
  };
  const plain = `{ ${fields}\n}`;
  const identified = `{ _exportId: id _exportType: __typename ${fields}\n}`;
  const hasId = (await mistakeIn(identified)) === undefined;
  const mistake = hasId ? undefined : await mistakeIn(plain);
  if (mistake !== undefined) {
    throw new OperatorMistake(`${mistake} Correct the list, --fields or --args.`);
  }
  const node = hasId ? identified : plain;
  return {
    /** The response keys of a record. */
    keys,
    /** The operation that reads records behind the cursor `$after`. */
    window: (first: number) =>
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
    throw new Error('it closes a bracket that it did not open.');
  } catch (error) {
    throw new OperatorMistake(
      `--fields cannot be read: ${(error as Error).message} It is written as in GraphQL, without braces around it: --fields "id title company { name }".`,
    );
  }
}

/** Records of a window of a connection, the default of CONNECTION_MAX. */
const WINDOW = 500;

/**
 * Reads a list to its end in windows of its connection: where the gateway knows the list, it reads several pages of a
 * window at a time. What it refuses as too much is read in windows that are half as large, until they are answered.
 *
 * @param needed returns how many records are still needed, before each operation
 * @throws Error with a message for the operator
 */
export async function* readPages(
  gateway: Gateway,
  list: ExportedList,
  { after: begin, needed }: { readonly after: string | undefined; readonly needed: () => number },
): AsyncGenerator<Page, void, undefined> {
  let after = begin;
  let size = WINDOW;
  while (needed() > 0) {
    let answer: Answer;
    try {
      answer = await ask(gateway, list.window(Math.min(needed(), size)), after);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      // The record of the cursor is gone, so the list is read from the start. What was written is left out again.
      if (error.code === 'CURSOR_INVALID' && after !== undefined) after = undefined;
      else if (error.helps === 'less' && size > 1) size = Math.floor(size / 2);
      else throw error;
      continue;
    }
    const { edges, pageInfo } = answer.window;
    const last = edges.at(-1);
    if (!last) return;
    after = last.cursor;
    yield { records: edges.map(({ node }) => recordOf(node)), after, faults: answer.faults };
    if (!pageInfo.hasNextPage) return;
  }
}

/** Separates the id and the type, which the export has added, from what was selected. */
function recordOf(node: ExportedRecord['values']): ExportedRecord {
  if (!node) return { id: null, values: null };
  const { _exportId: id = null, _exportType: type, ...values } = node;
  return { id: id === null ? null : `${String(type)} ${JSON.stringify(id)}`, values };
}

interface Answer {
  readonly window: {
    readonly edges: readonly { readonly cursor: string; readonly node: ExportedRecord['values'] }[];
    readonly pageInfo: { readonly hasNextPage: boolean };
  };
  readonly faults: Page['faults'];
}

/** A failure is final after this time without an answer. */
const PATIENCE_MS = 5 * 60_000;
/** Unless the gateway says how long. */
const WAIT_S = 10;

/** Sends an operation until it is answered. @throws Failure, or OperatorMistake for what must be corrected first */
async function ask(gateway: Gateway, query: string, after?: string): Promise<Answer> {
  const { clock, signal, onWait } = gateway;
  const end = clock.elapsed() + PATIENCE_MS;
  for (;;) {
    try {
      return await send(gateway, JSON.stringify({ query, variables: { after } }));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Failure) || error.helps !== 'time') throw error;
      const { message, retryAfter } = error;
      if (clock.elapsed() + retryAfter * 1000 > end) throw error;
      onWait(message, retryAfter);
      await clock.sleep(retryAfter * 1000, signal);
    }
  }
}

async function send({ url, apiKey, http, signal }: Gateway, body: string): Promise<Answer> {
  const { host } = new URL(url);
  let [status, text] = [0, ''];
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        ...(apiKey !== undefined && { 'x-api-key': apiKey }),
        'content-type': 'application/json',
        accept: 'application/json',
      },
      body,
      // Elsewhere, the key would be shown to somebody else.
      redirect: 'manual',
      signal,
      dispatcher: http,
    });
    [status, text] = [response.status, await response.text()];
  } catch (error) {
    // fetch hides the code of a network error in its cause.
    const { cause, name } = error as { cause?: { code?: string }; name?: string };
    throw new Failure(
      `The gateway at ${host} did not answer (${cause?.code ?? name}). Check that it is running, and the address in --url.`,
    );
  }
  const answer = answerIn(text);
  if (answer) return answer;
  const message = `${host} did not answer as a gateway does (HTTP ${status}). Check the address in --url.`;
  if (status !== 429 && status < 500) throw new OperatorMistake(message);
  throw new Failure(message);
}

interface AnswerError {
  readonly message?: string;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** @returns undefined for text that is not the answer of a gateway */
function answerIn(text: string): Answer | undefined {
  let answer: unknown;
  try {
    // Integers that JavaScript cannot represent keep their digits.
    answer = parseExactly(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(answer) || !('data' in answer || 'errors' in answer)) return undefined;
  const { data, errors = [] } = answer as {
    data?: { readonly list?: Answer['window'] | null } | null;
    errors?: readonly AnswerError[];
  };
  if (!data || data.list === null) throw failureOf(errors[0] ?? {});
  // A list below a record is null only because the caller has used the pages of the minute.
  const spent = errors.find(({ extensions }) => extensions?.['pagesPerMinute'] !== undefined);
  if (spent) throw failureOf(spent);
  return { window: data.list!, faults: errors.map(({ message = NO_REASON }) => message) };
}

function failureOf({ message = NO_REASON, extensions = {} }: AnswerError): Error {
  const { code, reason, pages, pagesPerMinute } = extensions;
  if (code === 'UNAUTHENTICATED') return new OperatorMistake(`${message} ${SET_KEY}`);
  if (code === 'FORBIDDEN') return new OperatorMistake(message);
  // The window may exceed CONNECTION_MAX, or need more pages than its caller has in a minute.
  const isTooMuch = means(code, 'invalid') || Number(pages) > Number(pagesPerMinute);
  const isLasting = means(code, 'lasting') || means(reason, 'lasting');
  // Once the pages of a minute are used up, all that an operation needs are back after a minute.
  const seconds = pagesPerMinute === undefined ? Number(extensions['retryAfter']) : 60;
  const failure = new Failure(message);
  failure.code = code;
  failure.helps = isTooMuch ? 'less' : isLasting ? 'nothing' : 'time';
  if (seconds > 0) failure.retryAfter = seconds;
  return failure;
}

const NO_REASON = 'The gateway gave no reason.';

const SET_KEY =
  'Set EXPORT_API_KEY to a key of this gateway; its operator makes one with `keys new <name> --scopes read`.';

/** The reason why a gateway returned nothing, or not everything. */
class Failure extends Error {
  override name = 'Failure';
  code: unknown;
  /** Whether the same request may succeed later, or one for fewer records now. */
  helps: 'time' | 'less' | 'nothing' = 'time';
  /** Seconds. */
  retryAfter = WAIT_S;
}
