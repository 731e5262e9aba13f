import { envelopeScanner } from '../../answers/scan-envelope.ts';
import { matches } from '../../answers/scan-leaf.ts';
import { scanner } from '../../answers/scan.ts';
import type { Shape } from '../../answers/shape.ts';
import { cut, isKeptAsCame, PAUSED, type Tape } from '../../answers/tape.ts';
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
  return envelopeScanner({ scan, take });

  function scan(bytes: Uint8Array, at: number, tape: Tape): number {
    if (bytes[at] !== 123) return -1;
    const { places } = tape;
    let end = at + 1;
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
    return bytes[end] === 125 ? end + 1 : -1;
  }
}

function* take(bytes: Buffer, tape: Tape): Pausable<ScannedBatch> {
  const at = tape.copyRecords();
  const records = [at[0] ?? 0, at.at(-1) ?? 0] as const;
  return recordsIn(
    isKeptAsCame(records, tape) ? { bytes, at } : yield* cut(bytes, records, tape, at),
  );
}

const HEADS = Array.from({ length: BATCH }, (_, at) =>
  Buffer.from(`${at > 0 ? ',' : ''}"${keyFor(at)}":`),
);

function recordsIn({ bytes, at }: { bytes: Buffer; at: readonly number[] }): ScannedBatch {
  const records = Array.from({ length: at.length / 2 }, (_, i) => {
    const start = at[2 * i]!;
    const isNull = bytes[start] === 110;
    return isNull ? undefined : bytes.subarray(start, at[2 * i + 1]);
  });
  return { records, size: bytes.length };
}
