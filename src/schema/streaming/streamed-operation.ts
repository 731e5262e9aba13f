import { locatedError, type DocumentNode, type ExecutionResult } from 'graphql';
import { NullList, surplusOf } from '../asking/page-fetcher.ts';
import { errorsAt } from '../asking/upstream-value.ts';
import { executePart, type Execute, type ExecutedPart } from './execute-part.ts';
import type { StreamedField } from './find-streams.ts';
import type { StreamTurns } from './list-stream.ts';
import { createMerge } from './merge.ts';
import {
  givenAt,
  inWholeList,
  shiftedError,
  type Increment,
  type StreamPayload,
} from './payload.ts';
import { openStreams, pathOf } from './streamed-lists.ts';

type Increments = AsyncGenerator<readonly Increment[], void, undefined>;
type ExecuteDocument = (document: DocumentNode) => Promise<ExecutedPart>;

/**
 * Answers an operation with lists that are streamed: at first everything else and the first records, then
 * the lists one after the other, a payload for each page, and among them what the executor puts off. The
 * next page is read when the payload before it was taken. An operation of which nothing is left for later
 * gets one plain answer.
 *
 * @param whole the operation without its streams
 */
export async function streamedOperation(
  whole: DocumentNode,
  fields: readonly StreamedField[],
  execute: Execute,
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
  execute: Execute,
): AsyncGenerator<StreamPayload, void, undefined> {
  const { lists, begun, end } = openStreams(fields);
  const executed: ExecuteDocument = (document) => executePart(execute, document, lists);
  const waiting = new Set(begun);
  const going: Increments[] = [];
  const later = createMerge<readonly Increment[]>();
  let isStreaming = false;
  try {
    const { result, further } = await executed(whole);
    if (further) later.add(further);
    beginAfter({ path: [], data: result.data });
    const first = { ...result, hasNext: further !== undefined || isStreaming };
    // Twice: once to see whether this is all, and then for the caller. So it is begun when the caller gets
    // it: a generator that was not begun ends without its `finally`.
    yield first;
    if (!first.hasNext) return;
    yield first;
    for (;;) {
      const incremental = await later.next();
      if (!incremental) break;
      incremental.forEach(beginAfter);
      yield { incremental, hasNext: true };
    }
    yield { hasNext: false };
  } finally {
    await Promise.all([later.end(), end()]);
  }

  /** A list is streamed on when its beginning was given; that may have been put off. */
  function beginAfter(given: Pick<Increment, 'path' | 'data'>): void {
    for (const one of waiting) {
      const { field, stream } = one;
      const beginning = givenAt(pathOf(field), given);
      if (beginning === undefined) continue;
      waiting.delete(one);
      if (!Array.isArray(beginning)) continue;
      going.push(furtherItems(field, stream, beginning.length, executed));
    }
    if (isStreaming || going.length === 0) return;
    isStreaming = true;
    later.add(oneAfterTheOther());
  }

  async function* oneAfterTheOther(): Increments {
    for (let next = going.shift(); next; next = going.shift()) yield* next;
    isStreaming = false;
  }
}

async function* furtherItems(
  field: StreamedField,
  stream: StreamTurns,
  begun: number,
  executed: ExecuteDocument,
): Increments {
  const path = pathOf(field);
  const { label } = field;
  let sent = begun;
  for (;;) {
    const next = await nextItems(field, stream, sent, executed);
    if (!next) return;
    const { items, errors, further } = next;
    if (items?.length !== 0 || errors.length > 0) {
      const at = { items, path: [...path, sent] };
      yield [{ ...at, ...(label && { label }), ...(errors.length > 0 && { errors }) }];
    }
    if (!items) return;
    for await (const increments of further ?? []) {
      yield increments.map((each) => inWholeList(each, path, sent));
    }
    sent += items.length;
  }
}

/** Undefined at the end of the list. */
async function nextItems(
  field: StreamedField,
  stream: StreamTurns,
  sent: number,
  executed: ExecuteDocument,
) {
  const path = pathOf(field);
  try {
    if (!(await stream.turn())) return undefined;
  } catch (error) {
    // The list is null; but it was said already that it begins.
    if (error instanceof NullList) return undefined;
    const errors = [locatedError(error, field.nodes, path), ...errorsAt(path, surplusOf(error))];
    return { items: null, errors };
  }
  const { result, further } = await executed(field.document);
  const items = givenAt(path, { path: [], data: result.data });
  return {
    items: Array.isArray(items) ? (items as unknown[]) : null,
    errors: (result.errors ?? []).map((error) => shiftedError(error, path, sent)),
    further,
  };
}
