import { personOf, type Person } from './person.ts';
import { SortKeys } from './sort-keys.ts';

/**
 * Persons in the order of their sort keys. A record is only a number here: its id, name and first sort key are derived
 * from the number when they are read, so that a million records are cheap.
 */
export class PersonList {
  readonly #initial: number;
  readonly #keys: SortKeys;
  /** Only of records that were inserted or moved. */
  readonly #changedKeys = new Map<number, string>();
  #records: number[];
  #nextRecord: number;

  constructor(count: number) {
    if (!Number.isSafeInteger(count) || count < 0) {
      throw new RangeError(`The number of persons must be a whole number from 0, not ${count}.`);
    }
    this.#initial = count;
    this.#keys = new SortKeys(count);
    this.#records = numbersFrom(0, count);
    this.#nextRecord = count;
  }

  get length(): number {
    return this.#records.length;
  }

  all(): Person[] {
    return this.slice(0, this.length);
  }

  slice(start: number, end: number): Person[] {
    return this.#records.slice(start, end).map(personOf);
  }

  /** Inserts new persons before the one at this position; at `length`, after the last one. */
  insert(at: number, count = 1): void {
    this.#mustBeWithin(at, this.length);
    this.#mustBeWithin(count, Number.MAX_SAFE_INTEGER);
    const keys = this.#keysAt(at, count);
    const added = numbersFrom(this.#nextRecord, count);
    this.#nextRecord += count;
    added.forEach((record, index) => this.#changedKeys.set(record, keys[index] ?? ''));
    this.#records = [...this.#records.slice(0, at), ...added, ...this.#records.slice(at)];
  }

  remove(at: number, count = 1): void {
    this.#mustBeWithin(at + count, this.length);
    this.#mustBeWithin(at, at + count);
    for (const record of this.#records.splice(at, count)) this.#changedKeys.delete(record);
  }

  /** Moves the person at `from`; its position afterwards is `to`. */
  move(from: number, to: number): void {
    this.#mustBeWithin(from, this.length - 1);
    this.#mustBeWithin(to, this.length - 1);
    const record = this.recordAt(from);
    this.#records.splice(from, 1);
    this.#changedKeys.set(record, this.#keysAt(to, 1)[0] ?? '');
    this.#records.splice(to, 0, record);
  }

  recordAt(position: number): number {
    const record = this.#records[position];
    if (record === undefined) throw new RangeError(`There is no person at ${position}.`);
    return record;
  }

  keyAt(position: number): string {
    return this.#keyOf(this.recordAt(position));
  }

  /** The position of the first person with a larger key. */
  positionAfterKey(key: string): number {
    return this.#firstPosition((other) => other > key);
  }

  /** The record's current position; undefined once it was removed. */
  positionOf(record: number): number | undefined {
    const key = this.#keyOf(record);
    const position = this.#firstPosition((other) => other >= key);
    return this.#records[position] === record ? position : undefined;
  }

  #keyOf(record: number): string {
    return (
      this.#changedKeys.get(record) ?? (record < this.#initial ? this.#keys.first(record) : '')
    );
  }

  #keysAt(position: number, count: number): string[] {
    if (position === this.length) return this.#keys.last(count);
    if (position === 0) return this.#keys.front(count);
    return this.#keys.between(this.keyAt(position - 1), this.keyAt(position), count);
  }

  /** Searches by halves: the list is in the order of its keys. */
  #firstPosition(holds: (key: string) => boolean): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(this.keyAt(middle))) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #mustBeWithin(position: number, last: number): void {
    if (!Number.isSafeInteger(position) || position < 0 || position > last) {
      throw new RangeError(`${position} is not within 0 and ${last}.`);
    }
  }
}

function numbersFrom(start: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => start + index);
}
