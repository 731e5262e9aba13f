import type { DocumentNode, OperationDefinitionNode } from 'graphql';
import {
  hasIncremental,
  streamAt,
  type StreamArguments,
} from '../schema/incremental-directives.ts';
import { fragmentsOf, onlyOperation } from '../selections.ts';
import { JsonText, type Answer, type AnswerError, type Path, type Piece } from './answer.ts';
import type { Call } from './call.ts';
import { ListField, type DrainedPart } from './list-field.ts';
import { selectedFields } from './selected-fields.ts';
import { errorsAt } from './service-answer.ts';

/** One payload of an answer in parts (the proposal of incremental delivery of 2022-08-24). */
export interface Payload {
  /** Set in the first payload: everything, with the first records of streamed lists. */
  readonly first?: Answer;
  readonly incremental?: readonly Increment[];
  readonly hasNext: boolean;
}

/** The further records of a list. */
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
interface StreamedList extends StreamArguments {
  readonly list: ListField;
}

/** Finds the lists of an operation that `@stream` asks to stream. */
export function streamedLists(
  {
    document,
    operation,
  }: { readonly document: DocumentNode; readonly operation: OperationDefinitionNode },
  derived: ReadonlyMap<string, unknown>,
): (call: Call) => readonly StreamedList[] {
  if (!hasIncremental(document)) return () => [];
  const only = onlyOperation(document, operation);
  const fields = selectedFields(only.operation.selectionSet, fragmentsOf(only.document)).flatMap(
    ({ key, uses }) => {
      const list = derived.get(key);
      return list instanceof ListField ? [{ list, nodes: uses.map(({ node }) => node) }] : [];
    },
  );
  return ({ variables: { values } }) =>
    fields.flatMap(({ list, nodes }) => {
      const stream = nodes.map((node) => streamAt(node, values)).find((each) => each);
      return stream ? [{ list, ...stream }] : [];
    });
}

/**
 * Answers an operation in parts: first everything else with the first records of the streamed lists, then these lists
 * one after the other, a payload for each page. A page is requested when the payload before was taken, so the client
 * decides the pace.
 *
 * @param answerOthers answers everything else; the streamed lists are empty in it
 */
export async function* streamOperation(
  streams: readonly StreamedList[],
  call: Call,
  answerOthers: () => Promise<Answer>,
): AsyncGenerator<Payload, void, undefined> {
  const lists = streams.map((stream) => new OpenList(stream, call));
  try {
    const [answer] = await Promise.all([answerOthers(), ...lists.map((list) => list.begin())]);
    const data = answer.data && { ...answer.data };
    const errors = [...answer.errors];
    for (const list of lists) {
      if (data) data[list.key] = list.first;
      errors.push(...list.firstErrors);
    }
    const open = data ? lists.filter((list) => list.isOpen) : [];
    yield { first: { ...answer, data, errors, bytes: undefined }, hasNext: open.length > 0 };
    for (const [at, list] of open.entries()) {
      const isLast = at === open.length - 1;
      let hasNext = true;
      for await (const increment of list.rest()) {
        // An error ends the list.
        hasNext = !isLast || increment.items !== undefined;
        yield { incremental: [increment], hasNext };
      }
      if (isLast && hasNext) yield { hasNext: false };
    }
  } finally {
    await Promise.all(lists.map((list) => list.end()));
  }
}

/** A list on its way to the caller. */
class OpenList {
  readonly key: string;
  /** Its first records; null if they could not be read. */
  first: JsonText | null = JsonText.ofList([]);
  firstErrors: readonly AnswerError[] = [];
  /** Whether there may be more records. */
  isOpen = true;
  readonly #stream: StreamedList;
  readonly #call: Call;
  readonly #parts: AsyncGenerator<DrainedPart, void, undefined>;
  #sent = 0;

  constructor(stream: StreamedList, call: Call) {
    this.key = stream.list.key;
    this.#stream = stream;
    this.#call = call;
    this.#parts = stream.list.parts(call);
  }

  /** Reads the first page, if the list is to begin with some records. */
  async begin(): Promise<void> {
    if (!this.#stream.hasFirstPage) return;
    try {
      const { done, value } = await this.#parts.next();
      if (done) {
        this.isOpen = false;
        return;
      }
      const text = value.texts.join(',');
      this.#call.hold(value, text.length);
      this.#sent = value.texts.length;
      this.first = JsonText.ofList([text]);
      this.firstErrors = value.errors;
    } catch (error) {
      this.isOpen = false;
      this.first = null;
      this.firstErrors = errorsAt(error, [this.key]);
    }
  }

  /** Yields the records that follow, page by page. An error ends it. */
  async *rest(): AsyncGenerator<Increment, void, undefined> {
    try {
      for await (const part of this.#parts) yield this.#increment(part);
    } catch (error) {
      const path = [this.key];
      const errors = errorsAt(error, path);
      yield { path: [...path, this.#sent], label: this.#stream.label, items: undefined, errors };
    }
  }

  async end(): Promise<void> {
    await this.#parts.return();
  }

  #increment({ texts, errors, ...extensions }: DrainedPart): Increment {
    const path = [this.key, this.#sent];
    this.#sent += texts.length;
    const { label } = this.#stream;
    return { path, label, items: [texts.join(',')], errors, extensions };
  }
}
