import { streamAt } from '../schema/incremental-directives.ts';
import { errorsBelow, type Answer, type AnswerError, type Path, type Piece } from './answer.ts';
import type { Call } from './call.ts';
import { ListField } from './list-field.ts';
import type { SelectedField } from './selected-fields.ts';
import { failed } from './service-answer.ts';

/** One payload of an answer in parts (the proposal of incremental delivery of 2022-08-24). */
export interface Payload {
  /** Set in the first payload: everything else; the streamed lists are empty in it. */
  readonly first?: Answer;
  readonly increment?: Increment;
  readonly hasNext: boolean;
}

/** Some records of a list. */
export interface Increment {
  /** Of the list, with the index of the first of these records at its end. */
  readonly path: Path;
  readonly label: string | undefined;
  /** The records as JSON, with commas between them; undefined for null: an error ends the list. */
  readonly items: readonly Piece[] | undefined;
  readonly errors: readonly AnswerError[];
  /** `resumeAfter`, for a caller whose connection breaks before the next payload. */
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** A list that is streamed in a call. */
interface StreamedList {
  readonly key: string;
  readonly list: ListField;
  readonly label: string | undefined;
}

/** Finds the lists that `@stream` asks to stream. @param selected the fields of the root */
export function streamedLists(
  selected: readonly SelectedField[],
  derived: ReadonlyMap<string, unknown>,
  { variables: { values } }: Call,
): readonly StreamedList[] {
  return selected.flatMap(({ key, uses }) => {
    const list = derived.get(key);
    if (!(list instanceof ListField)) return [];
    const stream = uses.map(({ node }) => streamAt(node, values)).find((each) => each);
    return stream ? [{ key, list, ...stream }] : [];
  });
}

/**
 * Answers an operation in parts: first everything else, with the streamed lists empty, then these lists one after the
 * other, a payload for each page. A page is requested when the payload before was taken, so the client decides the pace.
 *
 * @param answerOthers answers everything else; the streamed lists are empty in it
 */
export async function* streamOperation(
  streams: readonly StreamedList[],
  call: Call,
  answerOthers: () => Promise<Answer>,
): AsyncGenerator<Payload, void, undefined> {
  const first = await answerOthers();
  yield { first, hasNext: Boolean(first.data) };
  if (!first.data) return;
  for (const [at, stream] of streams.entries()) {
    const isLast = at === streams.length - 1;
    let hasNext = true;
    for await (const increment of incrementsOf(stream, call)) {
      // An error ends the list.
      hasNext = !isLast || increment.items !== undefined;
      yield { increment, hasNext };
    }
    if (isLast && hasNext) yield { hasNext: false };
  }
}

/** Yields the records of a list, page by page. An error ends it. */
async function* incrementsOf(
  { key, list, label }: StreamedList,
  call: Call,
): AsyncGenerator<Increment, void, undefined> {
  let sent = 0;
  try {
    for await (const { count, text, errors, resumeAfter } of list.parts(call)) {
      const path = [key, sent];
      sent += count;
      const placed = errorsBelow([key], errors);
      yield { path, label, items: [text], errors: placed, extensions: { resumeAfter } };
    }
  } catch (error) {
    const errors = errorsBelow([key], failed(error).errors);
    yield { path: [key, sent], label, items: undefined, errors };
  }
}
