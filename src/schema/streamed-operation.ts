import {
  GraphQLError,
  locatedError,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
} from 'graphql';
import { createListStream, type ListStream } from './list-stream.ts';
import { NullList, surplusOf } from './page-fetcher.ts';
import type { ServingContext } from './serving-context.ts';
import { errorsAt } from './upstream-value.ts';

/** An `all…` field of the root that is to be streamed. */
export interface StreamedField {
  /** Its name in the answer. */
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly initialCount: number;
  readonly label: string | undefined;
  /** Asks for nothing but this field. */
  readonly document: DocumentNode;
}

/** What is sent to the caller at a time, as the proposal of 2022-08-24 has it. */
export type StreamPayload = ExecutionResult & {
  readonly hasNext: boolean;
  readonly incremental?: readonly StreamedItems[];
};

interface StreamedItems {
  /** Null: there are no further ones, since something is wrong. */
  readonly items: readonly unknown[] | null;
  /** Ends with the place of the first item in the whole list. */
  readonly path: readonly (string | number)[];
  readonly label?: string;
  readonly errors?: readonly GraphQLError[];
}

/** Executes a document that streams nothing, for one part of the answer. */
export type ExecutePart = (
  document: DocumentNode,
  context: Pick<ServingContext, 'streams' | 'surplusErrors'>,
) => Promise<ExecutionResult>;

/**
 * Answers an operation with streamed `all…` fields: at first everything else and the first records, then
 * the fields one after the other, a payload for each page. The next page is read when the payload before it
 * was taken. An operation of which nothing is left to be streamed gets one plain answer.
 *
 * @param whole the operation without its streams
 */
export async function streamedOperation(
  whole: DocumentNode,
  fields: readonly StreamedField[],
  execute: ExecutePart,
): Promise<ExecutionResult | AsyncGenerator<StreamPayload, void, undefined>> {
  const payloads = payloadsOf(whole, fields, execute);
  const { value: first } = await payloads.next();
  if (first?.hasNext) return payloads;
  await payloads.return();
  const { hasNext: _, ...result } = first ?? { hasNext: false };
  return result;
}

async function* payloadsOf(
  whole: DocumentNode,
  fields: readonly StreamedField[],
  execute: ExecutePart,
): AsyncGenerator<StreamPayload, void, undefined> {
  const begun = fields.map((field) => ({ field, stream: createListStream(field.initialCount) }));
  const streams = new Map(begun.map(({ field, stream }) => [field.key, stream]));
  try {
    const first = await executed(execute, whole, streams);
    const going = begun.filter(({ field }) => Array.isArray(first.data?.[field.key]));
    // Twice: once to see whether this is all, and then for the caller. So it is begun when the caller gets
    // it: a generator that was not begun ends without its `finally`.
    yield { ...first, hasNext: going.length > 0 };
    if (going.length === 0) return;
    yield { ...first, hasNext: true };
    for (const { field, stream } of going) {
      const { length } = first.data![field.key] as unknown[];
      yield* furtherItems(field, stream, length, execute);
    }
    yield { hasNext: false };
  } finally {
    await Promise.all(begun.map(({ stream }) => stream.end()));
  }
}

async function* furtherItems(
  field: StreamedField,
  stream: ListStream,
  begun: number,
  execute: ExecutePart,
): AsyncGenerator<StreamPayload, void, undefined> {
  const { key, label } = field;
  let sent = begun;
  for (;;) {
    const next = await nextItems(field, stream, sent, execute);
    if (!next) return;
    const { items, errors } = next;
    if (items?.length === 0 && errors.length === 0) continue;
    const path = [key, sent];
    const streamed = { items, path, ...(label && { label }), ...(errors.length > 0 && { errors }) };
    yield { incremental: [streamed], hasNext: true };
    if (!items) return;
    sent += items.length;
  }
}

/** Undefined at the end of the list. */
async function nextItems(
  { key, nodes, document }: StreamedField,
  stream: ListStream,
  sent: number,
  execute: ExecutePart,
): Promise<{ items: unknown[] | null; errors: readonly GraphQLError[] } | undefined> {
  try {
    if (!(await stream.turn())) return undefined;
  } catch (error) {
    // The list is null; but it was said already that it begins.
    if (error instanceof NullList) return undefined;
    const errors = [locatedError(error, nodes, [key]), ...errorsAt([key], surplusOf(error))];
    return { items: null, errors };
  }
  const { data, errors = [] } = await executed(execute, document, new Map([[key, stream]]));
  return {
    items: (data?.[key] as unknown[] | null | undefined) ?? null,
    errors: errors.map((error) => inWholeList(error, sent)),
  };
}

/** With the surplus errors of this part among its errors. */
async function executed(
  execute: ExecutePart,
  document: DocumentNode,
  streams: ReadonlyMap<string, ListStream>,
): Promise<ExecutionResult> {
  const surplusErrors: GraphQLError[] = [];
  const result = await execute(document, { streams, surplusErrors });
  const errors = [...(result.errors ?? []), ...surplusErrors];
  return { ...result, ...(errors.length > 0 && { errors }) };
}

/** A part is executed like a list of its own, whose places are counted from 0. */
function inWholeList(error: GraphQLError, sent: number): GraphQLError {
  const [key, place, ...inside] = error.path ?? [];
  if (key === undefined || typeof place !== 'number') return error;
  const { message, nodes, extensions, originalError } = error;
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    path: [key, sent + place, ...inside],
    extensions,
    originalError: originalError ?? null,
  });
}
