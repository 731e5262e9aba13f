import type { HeldBytes } from '../answers/budget.ts';
import type { AnswerError, Path } from '../answers/errors.ts';
import type { DeferredReading, Hole, Reading } from '../answers/read.ts';
import type { WholeAnswer } from '../answers/write-answer.ts';
import type { Identified } from '../paging/page.ts';

/** A piece of an answer: text, bytes that may be shared with other answers, or a place that is still to be filled. */
export type Part = string | Buffer | Hole;

/** One record of a list, as its page has it. */
export interface ListRecord extends Identified {
  readonly page: RecordPage;
  /** Its place in the page. */
  readonly place: number;
}

/** A record of a page of bytes: its identity is read when somebody wants it as text. */
export class ScannedRecord implements ListRecord {
  readonly page: Extract<RecordPage, { kind: 'bytes' }>;
  readonly place: number;

  constructor(page: ScannedRecord['page'], place: number) {
    this.page = page;
    this.place = place;
  }

  get identity(): string | null {
    return this.page.identityAt(this.place);
  }
}

/**
 * The records of one page: as bytes where the scanner took them, else as they were read. Each is there once for each
 * place of the operation that shows records.
 */
export type RecordPage =
  | {
      readonly kind: 'bytes';
      readonly bytes: Buffer;
      /** Start and end of each record, of one place after the other. */
      readonly at: Int32Array;
      readonly count: number;
      readonly size: number;
      readonly identityAt: (place: number) => string | null;
    }
  | {
      readonly kind: 'readings';
      readonly readings: readonly (readonly Reading[])[];
      /** Of all of them, in bytes, about. */
      readonly size: number;
    };

/** Holds the pages of these records for the answer of an operation. */
export async function holdPages(
  held: HeldBytes,
  records: readonly { readonly record: ListRecord }[],
): Promise<void> {
  let last: RecordPage | undefined;
  for (const { record } of records) {
    if (record.page === last) continue;
    last = record.page;
    const waiting = held.hold(last, last.size);
    if (waiting) await waiting;
  }
}

/** Takes what is written of an answer. */
export interface Output {
  readonly parts: Part[];
  readonly errors: AnswerError[];
  /** Takes what comes later; left out where everything comes at once. */
  readonly deferred?: DeferredReading[] | undefined;
}

/** The value of one field; undefined parts stand for null. */
export interface FieldValue {
  readonly parts: readonly Part[] | undefined;
  readonly errors: readonly AnswerError[];
  /** What comes later. */
  readonly deferred?: readonly DeferredReading[] | undefined;
}

export interface OperationAnswer extends WholeAnswer {
  readonly deferred: readonly DeferredReading[];
}

/**
 * Writes records with commas between them.
 *
 * @param at where the list is in the answer, and how many of its records came before
 * @returns false when one is null that may not be, so that the list has to be
 */
export function writeRecords(
  records: readonly ListRecord[],
  of: number,
  { parts, errors, deferred }: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
  for (let i = 0; i < records.length;) {
    const { page, place } = records[i]!;
    if (i > 0) parts.push(',');
    if (page.kind === 'bytes') {
      // Records that stand next to each other in their page go out as they stand there.
      let end = i + 1;
      while (
        end < records.length &&
        records[end]!.page === page &&
        records[end]!.place === place + (end - i)
      )
        end += 1;
      parts.push(bytesOf(page, of, place, place + (end - i) - 1));
      i = end;
      continue;
    }
    const reading = page.readings[of]![place]!;
    const path = [...at.path, at.offset + i];
    if (!writeReading(reading, { parts, errors, deferred }, path)) return false;
    i += 1;
  }
  return true;
}

/** @param path where the record is in the answer @returns false when it is null and may not be */
export function writeRecord(
  { page, place }: ListRecord,
  of: number,
  output: Output,
  path: Path,
): boolean {
  if (page.kind !== 'bytes') return writeReading(page.readings[of]![place]!, output, path);
  output.parts.push(bytesOf(page, of, place, place));
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
  of: number,
  first: number,
  last: number,
): Buffer {
  return bytes.subarray(at[2 * (of * count + first)], at[2 * (of * count + last) + 1]);
}
