import type { AnswerError, Path } from '../answers/answer-errors.ts';
import type { DeferredReading, Placeholder, Reading } from '../answers/read.ts';
import type { WholeAnswer } from '../answers/write-answer.ts';
import type { Identified } from '../paging/page.ts';

/** A piece of an answer: text, bytes that other answers may share, or a field that is still to be filled in. */
export type Part = string | Buffer | Placeholder;

/** Collects what is written of an answer. */
export interface Output {
  readonly parts: Part[];
  readonly errors: AnswerError[];
  /** Collects what `@defer` puts off; undefined where everything is sent at once. */
  readonly deferred?: DeferredReading[] | undefined;
}

/** The value of one field. Undefined `parts` stand for null. */
export interface FieldValue {
  readonly parts: readonly Part[] | undefined;
  readonly errors: readonly AnswerError[];
  readonly deferred?: readonly DeferredReading[] | undefined;
}

export interface OperationAnswer extends WholeAnswer {
  readonly deferred: readonly DeferredReading[];
}

/** One record of a list. */
export interface ListRecord extends Identified {
  readonly page: RecordPage;
}

/** A record of a page of bytes. Its identity becomes a string only when it is read. */
export class ScannedRecord implements ListRecord {
  readonly page: Extract<RecordPage, { kind: 'bytes' }>;
  readonly index: number;

  constructor(page: ScannedRecord['page'], index: number) {
    this.page = page;
    this.index = index;
  }

  get identity(): string | null {
    return this.page.identityAt(this.index);
  }
}

/**
 * The records of one page: as bytes where the scanner took the page, otherwise as readings. An operation may select
 * records at several places (`edges { node }` and `nodes`): the page holds each record once per selection.
 */
export type RecordPage =
  | {
      readonly kind: 'bytes';
      readonly bytes: Buffer;
      /** Start and end of each record: first all records of the first selection, then those of the next. */
      readonly at: readonly number[];
      readonly count: number;
      readonly size: number;
      readonly identityAt: (index: number) => string | null;
    }
  | {
      readonly kind: 'readings';
      /** By selection, then by index. */
      readonly readings: readonly (readonly Reading[])[];
      /** Of all readings, in bytes, roughly. */
      readonly size: number;
    };

/** Counts the pages of these records against the memory that answers may hold. */
export async function holdPages(
  call: { hold(page: RecordPage, bytes: number): Promise<void> | undefined },
  records: readonly ListRecord[],
): Promise<void> {
  let last: RecordPage | undefined;
  for (const { page } of records) {
    if (page === last) continue;
    last = page;
    const waiting = call.hold(last, last.size);
    if (waiting) await waiting;
  }
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
  { parts, errors, deferred }: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
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
      parts.push(bytesOf(page, selection, index, index + (end - i) - 1));
      i = end;
      continue;
    }
    const reading = page.readings[selection]![index]!;
    const path = [...at.path, at.offset + i];
    if (!writeReading(reading, { parts, errors, deferred }, path)) return false;
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
  output.parts.push(bytesOf(page, selection, index, index));
  return true;
}

export function writeReading(
  reading: Reading,
  { parts, errors, deferred }: Output,
  path: Path,
): boolean {
  for (const error of reading.errors)
    errors.push({ ...error, path: [...path, ...(error.path ?? [])] });
  if (!reading.parts) return false;
  for (const part of reading.parts) {
    parts.push(typeof part === 'string' ? part : { ...part, path: [...path, ...part.path] });
  }
  for (const one of reading.deferred) deferred?.push({ ...one, path: [...path, ...one.path] });
  return true;
}

function bytesOf(
  { bytes, at, count }: Extract<RecordPage, { kind: 'bytes' }>,
  selection: number,
  first: number,
  last: number,
): Buffer {
  return bytes.subarray(
    at[2 * (selection * count + first)],
    at[2 * (selection * count + last) + 1],
  );
}
