import { personOf, type Person } from '../../sandbox/persons.ts';
import type { ReadPersons } from '../../sandbox/persons-schema.ts';
import { ListModel, type CursorKind } from './list-model.ts';

/** The persons of the sandbox, as a list that a test can change. */
export class PersonList {
  readonly #model: ListModel;

  constructor(length: number, kind: CursorKind = 'key') {
    this.#model = new ListModel({ kind, length, limit: Infinity });
  }

  get length(): number {
    return this.#model.shown.length;
  }

  all(): Person[] {
    return this.#model.shown.map(personOf);
  }

  slice(start: number, end: number): Person[] {
    return this.#model.shown.slice(start, end).map(personOf);
  }

  /** Inserts new persons in front of the one at this position. */
  insert(at: number, count: number): void {
    this.#model.apply({ do: 'insert', at, count });
  }

  remove(at: number, count: number): void {
    this.#model.apply({ do: 'remove', at, count });
  }

  /** Moves the person at `from`; its position afterwards is `to`. */
  move(from: number, to: number): void {
    this.#model.apply({ do: 'move', from, to });
  }

  readonly read: ReadPersons = (after, size) => {
    const { records, hasNextPage, endCursor } = this.#model.page(after, size);
    return { items: records.map(personOf), hasNextPage, end: endCursor! };
  };
}
