import type { AnswerError, Path } from '../answers/answer-errors.ts';
import type { DeferredReading, Part, Placeholder, Reading } from '../answers/read.ts';
import type { WholeAnswer } from '../answers/write-answer.ts';
import type { IdentityBytes } from '../paging/cursor.ts';
import type { Identified, Page, PageIdentities, PageRecords } from '../paging/page.ts';

/** Collects what is written of an answer. */
export interface Output {
  readonly parts: Part[];
  readonly errors: AnswerError[];
  /** Collects what is sent later; undefined where everything is sent at once. */
  readonly later?: Later | undefined;
}

/** What was written of an answer. */
export interface Written {
  readonly parts: readonly Part[];
  readonly errors: readonly AnswerError[];
}

/** The same with every placeholder filled in, so that it can be sent. */
export interface Filled extends Written {
  readonly parts: readonly (string | Buffer)[];
}

/** The value of one field. Undefined `parts` stand for null. */
export interface FieldValue {
  readonly parts: readonly Part[] | undefined;
  readonly errors: readonly AnswerError[];
  readonly later?: Later | undefined;
}

/** The answer to an operation, or the fields of it that one `@defer` puts off. */
export interface OperationAnswer extends WholeAnswer {
  readonly later?: Later | undefined;
}

/** What a part of an answer leaves to later ones. */
export class Later {
  /** What `@defer` puts off of values that were read. */
  readonly readings: DeferredReading[];
  /** What `@defer` puts off of connections, and of the root. */
  readonly fields: DeferredFields[] = [];
  /** The lists whose first elements are in the part. */
  readonly lists: StreamedList[] = [];

  constructor(readings: readonly DeferredReading[] = []) {
    this.readings = [...readings];
  }

  add({ readings, fields, lists }: Later): void {
    for (const reading of readings) this.readings.push(reading);
    this.fields.push(...fields);
    this.lists.push(...lists);
  }
}

/** Fields of an object that `@defer` puts off. */
export interface DeferredFields {
  readonly path: Path;
  readonly label: string | undefined;
  /** Returns the members of the object. */
  read(): Promise<FieldValue>;
}

/** A list of the answer that is sent in parts. */
export interface StreamedList {
  readonly path: Path;
  readonly label: string | undefined;
  /** The number of elements sent so far. */
  readonly sent: number;
  /** Returns the next part; undefined at the end. A null ends the list. */
  next(): Promise<StreamedPart | undefined>;
}

interface StreamedPart extends FieldValue {
  readonly count: number;
  /** JSON. */
  readonly extensions?: string | undefined;
}

/** One record of a list. */
export interface ListRecord extends Identified {
  readonly page: RecordPage;
  readonly identityBytes?: IdentityBytes | undefined;
}

/** The contents of a page of bytes. */
export interface PageBytes {
  readonly bytes: Buffer;
  /**
   * Start and end of each record, first all records of the first selection, then those of the next: an operation may
   * select records at several places (`edges { node }` and `nodes`), and the page holds each record once per selection.
   */
  readonly at: readonly number[];
  readonly identityAt: (index: number) => string | null;
  /** Undefined where the bytes of ids are not kept, and for a record without an id. */
  readonly identityBytesAt: (index: number) => IdentityBytes | undefined;
  readonly identities: () => PageIdentities;
}

interface PageFacts extends Pick<
  Page<ListRecord>,
  'hasNextPage' | 'endCursor' | 'limit' | 'total' | 'isPart'
> {
  readonly count: number;
}

/** A page that the scanner took: bytes, and columns of numbers about its records. */
export class ScannedPage implements Page<ListRecord> {
  readonly kind = 'bytes';
  readonly count: number;
  readonly hasNextPage: boolean;
  readonly endCursor: string | null;
  readonly limit: number | undefined;
  readonly total: number | undefined;
  readonly isPart: boolean | undefined;
  readonly #contents: PageBytes;
  #items: readonly ScannedRecord[] | undefined;
  #identities: PageIdentities | undefined;

  constructor(
    { count, hasNextPage, endCursor, limit, total, isPart }: PageFacts,
    contents: PageBytes,
  ) {
    this.count = count;
    this.hasNextPage = hasNextPage;
    this.endCursor = endCursor;
    this.limit = limit;
    this.total = total;
    this.isPart = isPart;
    this.#contents = contents;
  }

  /** The same page, which others may have requested in this size: see `Page.isPart`. */
  asPart(): ScannedPage {
    const { count, hasNextPage, endCursor, total } = this;
    const facts = { count, hasNextPage, endCursor, total, limit: undefined, isPart: true };
    return new ScannedPage(facts, this.#contents);
  }

  get items(): readonly ScannedRecord[] {
    if (this.#items) return this.#items;
    const items: ScannedRecord[] = [];
    for (let i = 0; i < this.count; i += 1) items.push(new ScannedRecord(this, i));
    this.#items = items;
    return items;
  }

  get identities(): PageIdentities {
    return (this.#identities ??= this.#contents.identities());
  }

  get memory(): number {
    return this.#contents.bytes.length + (this.endCursor?.length ?? 0);
  }

  get bytes(): Buffer {
    return this.#contents.bytes;
  }

  identityAt(index: number): string | null {
    return this.#contents.identityAt(index);
  }

  identityBytesAt(index: number): IdentityBytes | undefined {
    return this.#contents.identityBytesAt(index);
  }

  startOf(selection: number, index: number): number {
    return this.#contents.at[2 * (selection * this.count + index)]!;
  }

  endOf(selection: number, index: number): number {
    return this.#contents.at[2 * (selection * this.count + index) + 1]!;
  }

  /** Records that are neighbours, as one piece, with the commas between them. */
  piece(selection: number, first: number, last: number): Buffer {
    return this.bytes.subarray(this.startOf(selection, first), this.endOf(selection, last));
  }
}

/** A record of a page of bytes. Its identity becomes a string only when it is read. */
class ScannedRecord implements ListRecord {
  readonly page: ScannedPage;
  readonly index: number;

  constructor(page: ScannedPage, index: number) {
    this.page = page;
    this.index = index;
  }

  get identity(): string | null {
    return this.page.identityAt(this.index);
  }

  get identityBytes(): IdentityBytes | undefined {
    return this.page.identityBytesAt(this.index);
  }
}

/** The contents of one page: as bytes where the scanner took the page, otherwise as readings. */
export type RecordPage =
  | ScannedPage
  | {
      readonly kind: 'readings';
      /** Indexed by selection, then by record. */
      readonly readings: readonly (readonly Reading[])[];
      /** The approximate size of all readings, in bytes. */
      readonly memory: number;
    };

type HoldsPages = { hold(page: object, bytes: number): Promise<void> | undefined };

/** Counts the pages of these records against the memory that answers may hold. */
export async function holdPages(
  call: HoldsPages,
  edges: readonly { readonly record: ListRecord }[],
): Promise<void> {
  let last: RecordPage | undefined;
  for (let i = 0; i < edges.length; i += 1) {
    const { page } = edges[i]!.record;
    if (page === last) continue;
    last = page;
    const waiting = call.hold(page, page.memory);
    if (waiting) await waiting;
  }
}

/** Counts a page against the memory that answers may hold. Returns a promise if the operation has to wait. */
export function holdPage(call: HoldsPages, page: Page<ListRecord>): Promise<void> | undefined {
  const contents = page instanceof ScannedPage ? page : page.items[0]?.page;
  return contents
    ? call.hold(contents, contents.memory)
    : call.hold(page, page.endCursor?.length ?? 0);
}

/** Writes records of one page: see `writeRecords`. */
export function writePageRecords(
  records: PageRecords<ListRecord>,
  output: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
  const { page, from, to, without } = records;
  if (!(page instanceof ScannedPage) || without) return writeRecords(records.list, 0, output, at);
  if (to > from) output.parts.push(page.piece(0, from, to - 1));
  return true;
}

/**
 * Writes records with commas between them.
 *
 * @param at the path of the list, and how many of its records were written before
 * @returns false when a record is null that must not be, so that the list has to be null
 */
export function writeRecords(
  records: readonly ListRecord[],
  selection: number,
  output: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
  const { parts } = output;
  for (let i = 0; i < records.length;) {
    const { page, index } = records[i]!;
    if (i > 0) parts.push(',');
    if (page.kind === 'bytes') {
      // Neighbours in the page are written as one piece, with the commas that stand between them.
      let end = i + 1;
      while (
        end < records.length &&
        records[end]!.page === page &&
        records[end]!.index === index + (end - i)
      )
        end += 1;
      parts.push(page.piece(selection, index, index + (end - i) - 1));
      i = end;
      continue;
    }
    const reading = page.readings[selection]![index]!;
    const path = [...at.path, at.offset + i];
    if (!writeReading(reading, output, path)) return false;
    i += 1;
  }
  return true;
}

/** @param path of the record @returns false when it is null and must not be */
export function writeRecord(
  { page, index }: ListRecord,
  selection: number,
  output: Output,
  path: Path,
): boolean {
  if (page.kind !== 'bytes') return writeReading(page.readings[selection]![index]!, output, path);
  output.parts.push(page.piece(selection, index, index));
  return true;
}

export function writeReading(
  reading: Reading,
  { parts, errors, later }: Output,
  path: Path,
): boolean {
  for (const error of reading.errors)
    errors.push({ ...error, path: [...path, ...(error.path ?? [])] });
  if (!reading.parts) return false;
  for (const part of reading.parts) {
    parts.push(isPlaceholder(part) ? { ...part, path: [...path, ...part.path] } : part);
  }
  for (const below of reading.deferred)
    later?.readings.push({ ...below, path: [...path, ...below.path] });
  return true;
}

export function isFilled(written: Written): written is Filled {
  return !written.parts.some(isPlaceholder);
}

export function isPlaceholder(part: Part): part is Placeholder {
  return typeof part !== 'string' && !Buffer.isBuffer(part);
}
