import { scanInAnyForm } from '../../answers/scan-any-form.ts';
import { matches } from '../../answers/scan-leaf.ts';
import { scanner } from '../../answers/scan.ts';
import { objectShape, type FieldShape, type Shape } from '../../answers/shape.ts';
import { cut, PAUSED, type Tape } from '../../answers/tape.ts';
import type { Pausable } from '../../pausable.ts';

/** The records of a batch. */
export interface ScannedBatch {
  /** By place; undefined for a record that is null. All are parts of the same bytes. */
  readonly records: readonly (Buffer | undefined)[];
  /** Bytes that stay in memory as long as one of the records. */
  readonly size: number;
}

/** Ids per request. */
export const BATCH = 50;

/** The alias of a record. @param at its place in the batch */
export function keyFor(at: number): string {
  return `_rsRecord${at}`;
}

/**
 * Makes a function that takes the answer to a batch as bytes, however many records it has; undefined for an answer that
 * has to be read in general.
 *
 * @param shape of each record
 */
export function batchScanner(shape: Shape): (bytes: Buffer) => Pausable<ScannedBatch | undefined> {
  const scanRecord = scanner(shape);
  const scanExtensions = scanner(ANYTHING);
  const records = KEYS.map((key) => shown(key, shape));
  const answer = [shown('data', objectShape(ROOT, records)), shown('extensions', ANYTHING)];
  return scanInAnyForm({ scan, take, shape: objectShape(ROOT, answer) });

  function scan(bytes: Uint8Array, at: number, tape: Tape): number {
    if (!matches(bytes, at, OPEN)) return -1;
    const { places } = tape;
    let end = OPEN.length;
    let record = 0;
    if (places.length > 0) {
      record = places.pop()!;
      end = places.pop()!;
    }
    for (; record < BATCH; record += 1) {
      const head = HEADS[record]!;
      if (!matches(bytes, end, head)) break;
      const start = end + head.length;
      const close = scanRecord(bytes, start, tape);
      if (close === PAUSED) places.push(end, record);
      if (close < 0) return close;
      tape.addRecord(start, close);
      end = close;
    }
    if (bytes[end] !== 125) return -1;
    end += 1;
    // They are not passed on.
    if (matches(bytes, end, EXTENSIONS)) {
      end = scanExtensions(bytes, end + EXTENSIONS.length, tape);
    }
    return end >= 0 && bytes[end] === 125 ? end + 1 : -1;
  }
}

function* take(bytes: Buffer, tape: Tape): Pausable<ScannedBatch> {
  const at = tape.copyRecords();
  const records = [at[0] ?? 0, at.at(-1) ?? 0] as const;
  return recordsIn(tape.cuts.length === 0 ? { bytes, at } : yield* cut(bytes, records, tape, at));
}

const ANYTHING: Shape = { kind: 'any', nullable: false, type: '' };
const ROOT = { nullable: false, type: '' };
const KEYS = Array.from({ length: BATCH }, (_, at) => keyFor(at));
const OPEN = Buffer.from('{"data":{');
const HEADS = KEYS.map((key, at) => Buffer.from(`${at > 0 ? ',' : ''}"${key}":`));
const EXTENSIONS = Buffer.from(',"extensions":');

function shown(key: string, shape: Shape): FieldShape {
  return { key, shape, isSilent: false };
}

function recordsIn({ bytes, at }: { bytes: Buffer; at: readonly number[] }): ScannedBatch {
  const records = Array.from({ length: at.length / 2 }, (_, i) => {
    const start = at[2 * i]!;
    const isNull = bytes[start] === 110;
    return isNull ? undefined : bytes.subarray(start, at[2 * i + 1]);
  });
  return { records, size: bytes.length };
}
