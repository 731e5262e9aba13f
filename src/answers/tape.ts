import { STEP, type Pausable } from '../pausable.ts';

/**
 * Checks the value that begins at a byte, and takes notes.
 *
 * A list pauses behind `Tape.pauseAt`: it and everything around it return PAUSED. Called again with the same arguments,
 * they go on where they were, which the tape knows.
 *
 * @returns the end of the value; -1 if the bytes do not match; PAUSED
 */
export type Scan = (bytes: Uint8Array, at: number, tape: Tape) => number;

export const PAUSED = -2;

/**
 * The notes of a scan. One tape is used for all scans of a scanner, so its contents must be copied to be kept. Its
 * arrays keep their size: emptied, they would have to grow again in each scan.
 */
export class Tape {
  /** Start and end of each part that is cut out or replaced, in the order of the bytes. */
  readonly cuts: number[] = [];
  /** What replaces each of them. */
  readonly inserts: string[] = [];
  /** Start and end of each noted field, by its index in `Marks.noted`. Older notes stay until they are overwritten. */
  readonly noted: number[] = [];
  /** The number of records of each marked list. */
  readonly counts: number[] = [];
  /** Where `data` begin in an answer, and where `extensions` begin and end; -1: not found so far. */
  dataAt = -1;
  extensionsAt = -1;
  extensionsEnd = -1;
  /** The byte behind which a list pauses. */
  pauseAt = STEP;
  /** Where the lists and objects around a pause go on, the outermost one last; empty while nothing is paused. */
  readonly places: number[] = [];
  #records = NO_NUMBERS;
  #recordCount = 0;
  #ids = NO_NUMBERS;
  #types: string[] = [];
  #idCount = 0;

  /** Records of all marked lists together. */
  get recordCount(): number {
    return this.#recordCount;
  }

  get idCount(): number {
    return this.#idCount;
  }

  /** Copies start and end of each record. */
  copyRecords(): number[] {
    return firstOf(this.#records, 2 * this.#recordCount);
  }

  /**
   * Copies start and end of the id of each record, as it was written, or of each of the values that identify it; 0 and 0
   * for a record without them.
   */
  copyIds(): number[] {
    return firstOf(this.#ids, 2 * this.#idCount);
  }

  /** The type of a record, by the index of its id; empty for one without an id. */
  typeOf(id: number): string {
    return this.#types[id]!;
  }

  addRecord(start: number, end: number): void {
    const at = 2 * this.#recordCount++;
    if (at === this.#records.length) this.#records = doubled(this.#records);
    this.#records[at] = start;
    this.#records[at + 1] = end;
  }

  addId(start: number, end: number, type: string): void {
    const record = this.#idCount++;
    if (2 * record === this.#ids.length) this.#ids = doubled(this.#ids);
    this.#ids[2 * record] = start;
    this.#ids[2 * record + 1] = end;
    this.#types[record] = type;
  }

  /** Replaces what was noted of a record that lacks one of these values. @param before the count before the record */
  withoutId(before: number, values: number): void {
    this.#idCount = before;
    for (let value = 0; value < values; value += 1) this.addId(0, 0, '');
  }

  reset(): void {
    this.pauseAt = STEP;
    this.dataAt = this.extensionsAt = this.extensionsEnd = -1;
    this.places.length = 0;
    if (this.cuts.length > 0) this.cuts.length = this.inserts.length = 0;
    if (this.counts.length > 0) this.counts.length = 0;
    this.#recordCount = this.#idCount = 0;
  }
}

const INITIAL_SIZE = 256;
const NO_NUMBERS: Int32Array<ArrayBuffer> = new Int32Array();

/** Not as a typed array: to create one takes about 1 us, because its memory is outside the V8 heap. */
function firstOf(numbers: Int32Array, count: number): number[] {
  const first = Array<number>(count);
  for (let i = 0; i < count; i += 1) first[i] = numbers[i]!;
  return first;
}

function doubled(full: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(INITIAL_SIZE, 2 * full.length));
  larger.set(full);
  return larger;
}

/**
 * Whether the bytes as they came are kept for this part of them: nothing is cut out of it, and extensions, which stay in
 * memory with it, are not larger than it is.
 */
export function isKeptAsCame([start, end]: readonly [number, number], tape: Tape): boolean {
  const { cuts, extensionsAt, extensionsEnd } = tape;
  for (let i = 0; i < cuts.length; i += 2) {
    if (cuts[i]! > end) break;
    if (cuts[i]! >= start) return false;
  }
  return extensionsEnd - extensionsAt <= end - start;
}

/**
 * Copies a part of the bytes and applies the cuts.
 *
 * @param places starts and ends in the bytes, in turn and in ascending order
 * @returns the copy, and where these places are in it
 */
export function* cut(
  bytes: Buffer,
  [start, end]: readonly [number, number],
  { cuts, inserts }: Pick<Tape, 'cuts' | 'inserts'>,
  places: readonly number[],
): Pausable<{ readonly bytes: Buffer; readonly at: number[] }> {
  let first = 0;
  while (first < cuts.length && cuts[first]! < start) first += 2;
  const at: number[] = [];
  let next = first;
  let shift = -start;
  // The quote behind the last digit of an id is an insert without a cut, at the very end.
  const passCuts = (until: number, isEnd: boolean) => {
    for (; next < cuts.length; next += 2) {
      const isBefore = cuts[next]! < until || (isEnd && cuts[next + 1] === until);
      if (!isBefore) return;
      shift += inserts[next / 2]!.length - (cuts[next + 1]! - cuts[next]!);
    }
  };
  for (let i = 0; i < places.length; i += 1) {
    passCuts(places[i]!, i % 2 === 1);
    at.push(places[i]! + shift);
  }
  passCuts(end, true);
  // Not from the shared pool: a part of it would keep the whole pool alive.
  const out = Buffer.allocUnsafeSlow(end + shift);
  let from = start;
  let written = 0;
  let pauseAt = start + STEP;
  for (let i = first; i < next; i += 2) {
    written += bytes.copy(out, written, from, cuts[i]);
    const insert = inserts[i / 2]!;
    if (insert !== '') written += out.write(insert, written, 'latin1');
    from = cuts[i + 1]!;
    if (from <= pauseAt) continue;
    pauseAt = from + STEP;
    yield;
  }
  bytes.copy(out, written, from, end);
  return { bytes: out, at };
}
