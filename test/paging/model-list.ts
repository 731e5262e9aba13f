import type { FetchPage, Page, PageRequest } from '../../src/paging/page.ts';

export type CursorKind = 'keyset' | 'record' | 'position';

export interface Letter {
  readonly identity: string;
  readonly index: number;
}

/** A change of a list; positions are taken modulo its length. */
export type Change =
  | { do: 'insert'; at: number; count: number }
  | { do: 'remove'; at: number; count: number }
  | { do: 'move'; from: number; to: number }
  | { do: 'limit'; to: number };

/** A model of the service's list: without a network, each answer is right at the moment when it is made. */
export class ModelList {
  readonly #cursors: CursorKind;
  #records: { id: number; key: number }[];
  #limit: number;
  #next: number;
  /** Records that were never moved, by id, with the number of the change that inserted them. */
  readonly #born = new Map<number, number>();
  #changes = 0;

  constructor(cursors: CursorKind, length: number, limit: number) {
    this.#cursors = cursors;
    this.#limit = limit;
    this.#next = length;
    this.#records = Array.from({ length }, (_, id) => ({ id, key: id }));
    for (const { id } of this.#records) this.#born.set(id, 0);
  }

  copy(): ModelList {
    const copy = new ModelList(this.#cursors, 0, this.#limit);
    copy.#records = this.#records.map((record) => ({ ...record }));
    copy.#next = this.#next;
    copy.#changes = this.#changes;
    for (const [id, born] of this.#born) copy.#born.set(id, born);
    return copy;
  }

  ids(): string[] {
    return this.#records.map(({ id }) => String(id));
  }

  get limit(): number {
    return this.#limit;
  }

  get changes(): number {
    return this.#changes;
  }

  /** The ids of records in the list that were not moved since this change. */
  stillSince(changes: number): string[] {
    return this.#records
      .filter(({ id }) => this.#born.get(id)! <= changes)
      .map(({ id }) => String(id));
  }

  apply(change: Change): void {
    this.#changes += 1;
    const list = this.#records;
    switch (change.do) {
      case 'limit':
        this.#limit = change.to;
        break;
      case 'insert': {
        const at = change.at % (list.length + 1);
        const added = Array.from({ length: change.count }, () => this.#make(this.#next++));
        this.#put(at, added);
        break;
      }
      case 'remove':
        if (list.length > 0) list.splice(change.at % list.length, change.count);
        break;
      case 'move': {
        if (list.length === 0) break;
        const [moved] = list.splice(change.from % list.length, 1);
        this.#put(change.to % (list.length + 1), [this.#make(moved!.id)]);
        break;
      }
    }
  }

  answer({ after, first }: PageRequest): Page<Letter> & { limit: number } {
    const list = this.#records;
    const start = after === null ? 0 : this.#startAfter(after);
    const size = Math.min(first ?? this.#limit, this.#limit);
    const items = list.slice(start, start + size);
    const end = start + items.length;
    return {
      items: items.map(({ id }, index) => ({ identity: String(id), index })),
      hasNextPage: items.length > 0 && end < list.length,
      endCursor: items.length > 0 ? this.#cursorAt(end - 1) : null,
      limit: size,
    };
  }

  #make(id: number) {
    this.#born.set(id, this.#changes);
    return { id, key: 0 };
  }

  #put(at: number, added: { id: number; key: number }[]): void {
    const low = this.#records[at - 1]?.key ?? (this.#records[at]?.key ?? 0) - added.length - 1;
    const high = this.#records[at]?.key ?? low + added.length + 1;
    added.forEach((record, index) => {
      record.key = low + ((high - low) * (index + 1)) / (added.length + 1);
    });
    this.#records.splice(at, 0, ...added);
  }

  #cursorAt(position: number): string {
    const { id, key } = this.#records[position]!;
    return String({ keyset: key, record: id, position }[this.#cursors]);
  }

  #startAfter(cursor: string): number {
    const value = Number(cursor);
    switch (this.#cursors) {
      case 'keyset': {
        const start = this.#records.findIndex(({ key }) => key > value);
        return start < 0 ? this.#records.length : start;
      }
      case 'record': {
        const place = this.#records.findIndex(({ id }) => id === value);
        if (place < 0) throw new Error('The record of this cursor is gone.');
        return place + 1;
      }
      case 'position':
        return value + 1;
    }
  }
}

/** Holds requests until the test answers them, in any order. */
export class HeldRequests {
  readonly #waiting: (() => void)[] = [];
  readonly #list: ModelList;
  inFlight = 0;
  maxInFlight = 0;
  requests = 0;

  constructor(list: ModelList) {
    this.#list = list;
  }

  readonly fetchPage: FetchPage<Letter> = (request, signal) => {
    this.requests += 1;
    this.inFlight += 1;
    this.maxInFlight = Math.max(this.maxInFlight, this.inFlight);
    return new Promise<Page<Letter>>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      this.#waiting.push(() => {
        try {
          resolve(this.#list.answer(request));
        } catch (error) {
          reject(error);
        }
      });
    }).finally(() => {
      this.inFlight -= 1;
    });
  };

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Answers one of the waiting requests. */
  answerOne(choice: number): void {
    this.#waiting.splice(choice % this.#waiting.length, 1)[0]?.();
  }
}
