import type { Answer, AnswerError, Path, Piece } from './answer.ts';
import type { Call } from './call.ts';

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

interface StreamedList {
  readonly list: {
    /** Yields the records page by page. An error ends the list. */
    increments(call: Call, label: string | undefined): AsyncGenerator<Increment, void, undefined>;
  };
  readonly label: string | undefined;
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
  for (const { list, label } of streams) {
    for await (const increment of list.increments(call, label)) yield { increment, hasNext: true };
  }
  yield { hasNext: false };
}
