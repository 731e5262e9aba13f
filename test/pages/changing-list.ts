/** How the service makes its cursors: of a sort key, of a record's id, or of an offset. */
export const CURSORS = ['keyset', 'record', 'position'] as const;
export type Cursors = (typeof CURSORS)[number];

/** How many records the service returns where `first` were requested, and more are left. */
export const LENGTHS = {
  'as requested': (first: number) => first,
  'at least ten': (first: number) => Math.max(first, 10),
  'rounded up to tens': (first: number) => Math.ceil(first / 10) * 10,
  'two thirds': (first: number) => Math.ceil((first * 2) / 3),
  'one at a time': () => 1,
  /** As a service that hides records, and fills the page up or not. */
  'now more, now fewer': (first: number, from: number) => Math.max(1, first + ((from * 7) % 5) - 2),
} as const;
export type Lengths = keyof typeof LENGTHS;

interface Row {
  readonly id: string | null;
  key: number;
  /** Distinguishes records whose ids are equal or null. */
  readonly serial: number;
}

export interface Options {
  readonly cursors: Cursors;
  readonly lengths?: Lengths;
  readonly limit?: number;
  /** Given the serial of a record. Default: an id of its own. */
  readonly idOf?: (serial: number) => string | null;
}

/** A model of the service's list, which can be changed between two requests. */
export class ChangingList {
  lengths: Lengths;
  limit: number;
  requests = 0;
  /** Called after each page that was read. */
  onRead: (() => void) | undefined;
  readonly #cursors: Cursors;
  readonly #idOf: (serial: number) => string | null;
  #rows: Row[] = [];
  #next = 0;

  constructor(count: number, { cursors, lengths, limit = 50, idOf }: Options) {
    this.#cursors = cursors;
    this.lengths = lengths ?? 'as requested';
    this.limit = limit;
    this.#idOf = idOf ?? ((serial) => `r${serial}`);
    this.insert(0, count);
  }

  get length(): number {
    return this.#rows.length;
  }

  /** The serials of all records, in order. */
  get all(): readonly number[] {
    return this.#rows.map(({ serial }) => serial);
  }

  insert(at: number, count = 1): void {
    const rows = Array.from({ length: count }, () => {
      const serial = this.#next++;
      return { id: this.#idOf(serial), key: 0, serial };
    });
    this.#put(Math.min(at, this.#rows.length), rows);
  }

  remove(at: number, count = 1): void {
    this.#rows.splice(at, count);
  }

  move(from: number, to: number): void {
    const moved = this.#rows.splice(from, 1);
    this.#put(Math.min(to, this.#rows.length), moved);
  }

  /** @throws Error for a cursor that the service does not know */
  read(after: string | null, first: number | undefined) {
    this.requests += 1;
    const from = after === null ? 0 : this.#behind(after);
    const size = Math.min(first ?? this.limit, this.limit);
    const rows = this.#rows.slice(from, from + LENGTHS[this.lengths](size, from));
    const to = from + rows.length;
    const page = {
      records: rows.map(({ serial }) => serial),
      ids: rows.map(({ id }) => id),
      hasNextPage: to < this.#rows.length,
      endCursor: rows.length > 0 ? this.#cursorOf(to - 1) : after,
      size,
    };
    this.onRead?.();
    return page;
  }

  #put(at: number, rows: Row[]): void {
    const low = this.#rows[at - 1]?.key ?? (this.#rows[at]?.key ?? 0) - rows.length - 1;
    const high = this.#rows[at]?.key ?? low + rows.length + 1;
    rows.forEach((row, i) => {
      row.key = low + ((high - low) * (i + 1)) / (rows.length + 1);
    });
    this.#rows.splice(at, 0, ...rows);
  }

  #cursorOf(at: number): string {
    const { key, serial } = this.#rows[at]!;
    return { keyset: `k${key}`, record: `s${serial}`, position: `p${at + 1}` }[this.#cursors];
  }

  #behind(cursor: string): number {
    const value = Number(cursor.slice(1));
    if (cursor.startsWith('p')) return value;
    const at = this.#rows.findIndex(({ key, serial }) =>
      cursor.startsWith('k') ? key > value : serial === value,
    );
    if (cursor.startsWith('s') && at < 0) throw new Error('The record of this cursor is gone.');
    if (cursor.startsWith('s')) return at + 1;
    return at < 0 ? this.#rows.length : at;
  }
}
