import type { FieldNode } from 'graphql';
import type { Path, UpstreamError } from '../../answers/answer-errors.ts';
import { codedError } from '../../errors.ts';
import { checkedCount } from '../../paging/connection.ts';
import { CursorEncoder, decodeCursor, type Position } from '../../paging/cursor.ts';
import { drainPages, type DrainedPage } from '../../paging/drain.ts';
import { positionOf } from '../../paging/walk.ts';
import { streamAt, type StreamArguments } from '../../schema/incremental-directives.ts';
import type { CallVariables } from '../call.ts';
import {
  holdPage,
  Later,
  writePageRecords,
  type FieldValue,
  type ListRecord,
  type Output,
  type StreamedList,
} from '../output.ts';
import { errorsOfList, NullList } from '../pages/page.ts';
import type { ListField, OpenedList } from './list-field.ts';

/*
 * A whole list is all its parts
 *
 * A list is read in parts, a page each. An answer in one piece has all of them; with `@stream`, the answer has the
 * first elements, and the other parts are sent as they are read.
 */

/** How the lists of a root field are sent, in an answer in parts. */
export interface FieldStreams {
  /** By the keys of lists: of `edges` and `nodes`, or of the field itself. Other lists are sent whole. */
  readonly lists: ReadonlyMap<string, StreamArguments>;
  /** Called with what ends the reading of the field, for a stream that ends before it. */
  readonly onOpen: (end: () => Promise<unknown>) => void;
}

/**
 * Returns how the lists of a field are streamed.
 *
 * @throws BAD_USER_INPUT if a list is selected at several places and streamed in different ways
 */
export function streamedLists(
  { key, connection }: ListField,
  nodes: readonly FieldNode[],
  { values }: CallVariables,
): FieldStreams['lists'] {
  const lists = new Map<string, StreamArguments>();
  const add = (path: readonly string[], selected: readonly FieldNode[]) => {
    const stream = agreed(path, selected, values);
    if (stream) lists.set(path.at(-1)!, stream);
  };
  if (!connection) add([key], nodes);
  for (const field of connection?.fields ?? []) {
    if (field.kind === 'edges' || field.kind === 'nodes') add([key, field.key], field.nodes);
  }
  return lists;
}

/** Returns how all these nodes stream the list. @throws BAD_USER_INPUT */
function agreed(
  path: Path,
  nodes: readonly FieldNode[],
  variables: CallVariables['values'],
): StreamArguments | undefined {
  const [stream, ...others] = nodes.map((node) => streamAt(node, variables));
  const isSame = (other: StreamArguments | undefined) =>
    other?.initialCount === stream?.initialCount && other?.label === stream?.label;
  if (others.every(isSame)) return stream;
  throw codedError(
    'BAD_USER_INPUT',
    `The operation selects ${path.join('.')} at several places: stream it at each of them, with the same initialCount and no label, or give it another alias.`,
  );
}

interface Elements<E> {
  readonly length: number;
  slice(start: number, end?: number): E;
}

interface ListPart<E> {
  readonly records: E;
  readonly unplacedErrors: readonly unknown[];
}

interface PartSource<E, P> {
  /** Begins to read the list. */
  readonly open: () => AsyncGenerator<P, void, undefined>;
  /** The path of unplaced errors. */
  readonly errorsAt: Path;
  /** Awaited before a part is written into an answer that keeps it. */
  readonly hold?: (part: P) => Promise<void> | undefined;
  /** @returns false when an element is null that must not be */
  readonly write: (
    elements: E,
    output: Output,
    at: { readonly path: Path; readonly offset: number },
  ) => boolean;
  /** Returns the extensions, as JSON, of the part that has the last elements of this one. */
  readonly extensions?: (part: P) => string;
}

/** A list that is read in parts. Without a stream, its first elements are all of them. */
export class ListInParts<E extends Elements<E>, P extends ListPart<E>> implements StreamedList {
  readonly path: Path;
  readonly label: string | undefined;
  readonly #initialCount: number | undefined;
  readonly #source: PartSource<E, P>;
  #parts: AsyncGenerator<P, void, undefined> | undefined;
  /** The elements behind the first ones, in the part that has the last of those. */
  #rest: { readonly part: P; readonly elements: E } | undefined;
  #failure: { readonly error: unknown } | undefined;
  #sent = 0;

  constructor(path: Path, stream: StreamArguments | undefined, source: PartSource<E, P>) {
    this.path = path;
    this.label = stream?.label;
    this.#initialCount = stream?.initialCount;
    this.#source = source;
  }

  get sent(): number {
    return this.#sent;
  }

  /** Writes the first elements. @returns false when one of them is null that must not be */
  async begin(output: Output): Promise<boolean> {
    const { hold } = this.#source;
    const count = this.#initialCount ?? Infinity;
    try {
      while (this.#sent < count) {
        const { done, value: part } = await this.#read();
        if (done) break;
        const waiting = hold?.(part);
        if (waiting) await waiting;
        const { records, unplacedErrors } = part;
        const first = records.slice(0, count - this.#sent);
        if (this.#sent > 0 && first.length > 0) output.parts.push(',');
        this.#report(unplacedErrors, output);
        if (!this.#write(first, output)) {
          await this.end();
          return false;
        }
        if (first.length < records.length) {
          this.#rest = { part, elements: records.slice(first.length) };
        }
      }
    } catch (error) {
      if (this.#initialCount === undefined || this.#sent === 0) {
        await this.end();
        throw error;
      }
      // The elements that were read are sent first.
      this.#failure = { error };
    }
    return true;
  }

  async next() {
    const output: Output = { parts: [], errors: [], later: new Later() };
    const ended = { ...output, parts: undefined, count: 0 };
    let part: P;
    let elements: E;
    if (this.#rest) {
      ({ part, elements } = this.#rest);
      this.#rest = undefined;
    } else {
      try {
        if (this.#failure) throw this.#failure.error;
        const { done, value } = await this.#read();
        if (done) return undefined;
        part = value;
        elements = part.records;
      } catch (error) {
        // The service returned null for the list, but its beginning was sent already.
        if (error instanceof NullList) return undefined;
        output.errors.push(...errorsOfList(error, this.path));
        await this.end();
        return ended;
      }
      this.#report(part.unplacedErrors, output);
    }
    if (!this.#write(elements, output)) {
      await this.end();
      return ended;
    }
    const count = elements.length;
    return {
      ...output,
      count,
      extensions: count > 0 ? this.#source.extensions?.(part) : undefined,
    };
  }

  /** Ends the reading. */
  async end(): Promise<void> {
    await this.#parts?.return();
  }

  #read() {
    this.#parts ??= this.#source.open();
    return this.#parts.next();
  }

  #report(unplacedErrors: readonly unknown[], { errors }: Output): void {
    const { errorsAt: path } = this.#source;
    for (const error of unplacedErrors as readonly UpstreamError[]) errors.push({ ...error, path });
  }

  #write(elements: E, output: Output): boolean {
    const isWritten = this.#source.write(elements, output, { path: this.path, offset: this.#sent });
    if (isWritten) this.#sent += elements.length;
    return isWritten;
  }
}

/** Reads an `all…` field: drains the list into one array. @param streams in an answer in parts */
export async function readAll(
  open: () => OpenedList,
  path: Path,
  streams?: FieldStreams,
): Promise<FieldValue> {
  const output: Output = { parts: ['['], errors: [], later: streams && new Later() };
  try {
    const opened = open();
    const { field, call } = opened;
    const stream = streams?.lists.get(field.key);
    const list = new ListInParts(path, stream, {
      open: () => drainedPages(opened, stream ? 'parts' : 'whole'),
      errorsAt: path,
      hold: ({ records }) => holdPage(call, records.page),
      write: writePageRecords,
      ...(stream && { extensions: continuation(opened) }),
    });
    if (stream) streams!.onOpen(() => list.end());
    if (!(await list.begin(output))) return { parts: undefined, errors: output.errors };
    if (stream) output.later!.lists.push(list);
  } catch (error) {
    return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
  }
  output.parts.push(']');
  return output;
}

/**
 * Drains the list of an `all…` field as its arguments say.
 *
 * @param delivered `whole`: the caller keeps all records until the end
 * @throws BAD_USER_INPUT, CURSOR_INVALID and the errors of drains
 */
function drainedPages(
  list: OpenedList,
  delivered: 'parts' | 'whole',
): AsyncGenerator<DrainedPage<ListRecord>, void, undefined> {
  const { field, call, args, keys, isNested } = list;
  const names = field.adapter.all!;
  const { [names.limit]: most, [names.after]: after } = args;
  const limit = typeof most === 'number' ? checkedCount(names.limit, most) : undefined;
  const position = decodeCursor(keys.cursors, after);
  if (field.refusal) throw field.refusal;
  const keepsAll = delivered === 'whole';
  if (keepsAll) expectBytes(list, limit);
  const selection = isNested ? undefined : field.shown.name(call.variables);
  const walked = list.drained(list.source('shown'), selection);
  const pages = field.parts.drains.walk(walked, { position, limit, call, keepsAll });
  const { signal, drainBudget: budget } = call;
  const toCursor = (at: Position) => new CursorEncoder(keys.cursors).encode(at);
  return drainPages(pages, { limit, position, budget, signal, toCursor, delivered });
}

/** Refuses answers that are too large before anything is read: a key is repeated in every record, however long. */
function expectBytes({ field, call, keys, isNested }: OpenedList, limit: number | undefined): void {
  const { all, ofAliases } = field.shown.keyBytes;
  const length = field.parts.drains.lengthOf(keys.walk);
  // Nested lists share one limit of records, and were announced together when the operation began.
  if (isNested && length === undefined) return;
  const most = Math.min(limit ?? Infinity, call.drainBudget.max);
  // The length of a list that was never walked is unknown. Then only the bytes that the caller's aliases add count.
  call.held.expect(length === undefined ? most * ofAliases : Math.min(most, length) * all);
}

/** A stream whose connection breaks has no last payload with an error, and can be continued all the same. */
function continuation({ keys, field }: OpenedList) {
  const { drains } = field.parts;
  const cursors = new CursorEncoder(keys.cursors);
  const listLength = drains.lengthOf(keys.walk);
  return ({ page, records }: DrainedPage<ListRecord>): string =>
    JSON.stringify({
      resumeAfter: cursors.encode(positionOf(page, records.list.at(-1)!)),
      listLength,
      counted: drains.counts.isBelieved(keys.walk) ? page.total : undefined,
    });
}
