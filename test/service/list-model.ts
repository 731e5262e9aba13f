import { CursorRefusedError, SizeRefusedError, type Page } from '../../src/paging/page.ts';

/** What a cursor of the service points at: a sort key, a record, or an offset in the list. */
export const KINDS = ['key', 'record', 'position'] as const;
export type CursorKind = (typeof KINDS)[number];

/** How the service chooses the number of records for a `first`. */
export const SIZINGS = [
  'exact',
  /** At least 10. */
  'least',
  /** Rounded up to tens. */
  'rounded',
  /** Two thirds of it. */
  'fewer',
  /** One or two more or fewer. */
  'varied',
  /** Reads on until it has `first` records that are not hidden, in steps of `first`. */
  'filled',
  /** One, whatever is requested. */
  'single',
] as const;
type Sizing = (typeof SIZINGS)[number];

/** The records of a page: the serial number of each is the record itself, whatever its id is. */
export type Serials = readonly number[];

/** A record of the model. */
interface ModelRecord {
  readonly serial: number;
  readonly id: string | null;
  /** The service never shows it, but its pages and cursors count it. */
  readonly isHidden: boolean;
  key: number;
  /** The number of the change that inserted it or moved it last. */
  born: number;
}

/** A change of a list; positions are taken modulo its length. */
export type Change =
  | { do: 'insert'; at: number; count: number }
  | { do: 'remove'; at: number; count: number }
  | { do: 'move'; from: number; to: number }
  | { do: 'size'; sizing: Sizing; limit: number };

export interface Traits {
  readonly kind: CursorKind;
  readonly length: number;
  /** The page limit. */
  readonly limit: number;
  readonly sizing?: Sizing;
  /** Whether pages report the limit that was used. Default: true. */
  readonly reports?: boolean;
  /** The service refuses larger pages. */
  readonly accepts?: number;
  /** Returns the id of a new record. Default: its serial number. */
  readonly idOf?: (serial: number) => string | null;
  readonly isHidden?: (serial: number) => boolean;
}

/** A model of one list of the service: each page is right at the moment when it is read. */
export class ListModel {
  readonly traits: Traits;
  limit: number;
  accepts: number;
  sizing: Sizing;
  changes = 0;
  #records: ModelRecord[] = [];
  #next = 0;

  constructor(traits: Traits) {
    this.traits = traits;
    this.limit = traits.limit;
    this.accepts = traits.accepts ?? Infinity;
    this.sizing = traits.sizing ?? 'exact';
    this.#put(0, this.#created(traits.length));
  }

  /** The serial numbers of all records that the service shows, in order. */
  get shown(): number[] {
    return this.#records.filter(({ isHidden }) => !isHidden).map(({ serial }) => serial);
  }

  /** The shown records that were neither inserted nor moved since this change. */
  stillSince(changes: number): number[] {
    const still = this.#records.filter(({ isHidden, born }) => !isHidden && born <= changes);
    return still.map(({ serial }) => serial);
  }

  idOf(serial: number): string | null {
    return this.traits.idOf ? this.traits.idOf(serial) : String(serial);
  }

  apply(change: Change): void {
    this.changes += 1;
    const records = this.#records;
    switch (change.do) {
      case 'size':
        this.sizing = change.sizing;
        this.limit = change.limit;
        break;
      case 'insert':
        this.#put(change.at % (records.length + 1), this.#created(change.count));
        break;
      case 'remove':
        if (records.length > 0) records.splice(change.at % records.length, change.count);
        break;
      case 'move': {
        if (records.length === 0) break;
        const [moved] = records.splice(change.from % records.length, 1);
        this.#put(change.to % (records.length + 1), [{ ...moved!, born: this.changes }]);
        break;
      }
    }
  }

  /** @throws SizeRefusedError, CursorRefusedError */
  page(after: string | null, first: number): Page<Serials> {
    if (first > this.accepts) throw new SizeRefusedError('The page costs too much.');
    const records = this.#records;
    const size = Math.min(first, this.limit);
    const start = after === null ? 0 : this.#startBehind(after);
    const end = this.#endOf(start, size);
    const shown = records.slice(start, end).filter(({ isHidden }) => !isHidden);
    return {
      records: shown.map(({ serial }) => serial),
      ids: shown.map(({ id }) => id),
      hasNextPage: end < records.length,
      endCursor: end > start ? this.#cursorOf(end - 1) : after,
      size: this.traits.reports === false ? first : size,
    };
  }

  #endOf(start: number, size: number): number {
    const { length } = this.#records;
    switch (this.sizing) {
      case 'least':
        return Math.min(length, start + Math.max(size, 10));
      case 'rounded':
        return Math.min(length, start + Math.ceil(size / 10) * 10);
      case 'fewer':
        return Math.min(length, start + Math.ceil((size * 2) / 3));
      case 'varied':
        return Math.min(length, start + Math.max(1, size + ((start * 7) % 5) - 2));
      case 'filled': {
        let end = start;
        let shown = 0;
        while (end < length && shown < size) {
          const step = this.#records.slice(end, end + size);
          shown += step.filter(({ isHidden }) => !isHidden).length;
          end += step.length;
        }
        return end;
      }
      case 'single':
        return Math.min(length, start + 1);
      case 'exact':
        return Math.min(length, start + size);
    }
  }

  #created(count: number): ModelRecord[] {
    return Array.from({ length: count }, () => {
      const serial = this.#next++;
      const isHidden = this.traits.isHidden?.(serial) ?? false;
      return { serial, id: this.idOf(serial), isHidden, key: 0, born: this.changes };
    });
  }

  #put(at: number, added: ModelRecord[]): void {
    const low = this.#records[at - 1]?.key ?? (this.#records[at]?.key ?? 0) - added.length - 1;
    const high = this.#records[at]?.key ?? low + added.length + 1;
    for (const [index, record] of added.entries()) {
      record.key = low + ((high - low) * (index + 1)) / (added.length + 1);
    }
    this.#records.splice(at, 0, ...added);
  }

  #cursorOf(position: number): string {
    const { serial, key } = this.#records[position]!;
    return String({ key, record: serial, position: position + 1 }[this.traits.kind]);
  }

  #startBehind(cursor: string): number {
    const value = Number(cursor);
    switch (this.traits.kind) {
      case 'key': {
        const start = this.#records.findIndex(({ key }) => key > value);
        return start < 0 ? this.#records.length : start;
      }
      case 'record': {
        const position = this.#records.findIndex(({ serial }) => serial === value);
        if (position < 0) throw new CursorRefusedError('The record of this cursor is gone.');
        return position + 1;
      }
      case 'position':
        return Math.min(value, this.#records.length);
    }
  }
}
