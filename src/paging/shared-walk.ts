import type { Budget } from './page-budget.ts';
import { WALK_LEFT } from './page.ts';

/** A walk as its readers see it: its pages, or what they need of each. */
type Walk<T> = AsyncGenerator<T, void, undefined>;

/** Who reads a walk: an operation, or all its readers together, as the walk sees them. */
export interface WalkReader {
  /** Spends for all pages that are requested while the reader follows the walk. */
  readonly budget: Budget;
  /** Aborted when the reader needs the walk no more. */
  readonly signal: AbortSignal;
}

interface Reader {
  readonly budget: Budget;
  /** Why the reader has left, or cannot afford the next page. */
  left: { readonly reason: unknown } | undefined;
  /** Ends its wait for a page. */
  stopWaiting: (reason: unknown) => void;
}

/** The current walks that equal drains share. */
export class SharedWalks {
  #walks = new Map<string, SharedWalk<unknown>>();

  /**
   * Joins the walk of this name, or begins it. A page is requested when the fastest reader needs it, and kept for later
   * readers until the walk is over. Each reader can leave without an effect on the others; the walk ends when the last
   * one leaves.
   *
   * @param name names everything that the pages depend on: list, filters, selection, cursor. Undefined: the walk has one
   *   reader, who decides its pace
   */
  join<T>(name: string | undefined, begin: Begin<T>, reader: WalkReader): Walk<T> {
    if (name === undefined) return begin(reader);
    const walks = this.#walks;
    const known = walks.get(name) as SharedWalk<T> | undefined;
    const read = known ?? shareWalk(begin, reader.budget.caller, () => walks.delete(name));
    walks.set(name, read);
    return read(reader);
  }

  /** Walks that begin from now on share nothing with the current ones: call it when a mutation begins, and ends. */
  separate(): void {
    this.#walks = new Map();
  }
}

/** Begins a walk for its readers. */
type Begin<T> = (readers: WalkReader) => Walk<T>;
/** Adds a reader to a walk. */
type SharedWalk<T> = (reader: WalkReader) => Walk<T>;

function shareWalk<T>(begin: Begin<T>, caller: string, onEnd: () => void): SharedWalk<T> {
  const ending = new AbortController();
  const readers = new Set<Reader>();
  /** What was requested so far: pages, and the end or the failure of the walk. */
  const pages: Promise<IteratorResult<T, void>>[] = [];
  /** Of all readers: those who cannot afford a page are refused. */
  const together: Budget = {
    caller,
    spend,
    get forOverhead() {
      return together;
    },
  };
  const walk = begin({ signal: ending.signal, budget: together });

  return ({ budget, signal }) => {
    const reader: Reader = { budget, left: undefined, stopWaiting: () => {} };
    // It counts from now on, not from its first page on: otherwise the walk could end in between.
    readers.add(reader);
    const onAbort = () => leave(reader, signal.reason);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    return follow(reader, () => {
      // The signal may outlive many walks.
      signal.removeEventListener('abort', onAbort);
      leave(reader, WALK_LEFT);
    });
  };

  async function* follow(reader: Reader, onLeft: () => void): Walk<T> {
    try {
      for (let at = 0; ; at += 1) {
        if (reader.left) throw reader.left.reason;
        // The first reader who needs a page requests it.
        const page = (pages[at] ??= walk.next());
        const { done, value } = await unlessLeft(reader, page);
        if (done) return;
        yield value;
      }
    } finally {
      onLeft();
    }
  }

  /** Each caller is charged once, whichever of its operations wait. */
  function spend(cost = 1, { isCharged = false } = {}): void {
    if (isCharged) return;
    const charged = new Set<string>();
    for (const budget of new Set(Array.from(readers, (reader) => reader.budget))) {
      try {
        budget.spend(cost, { isCharged: charged.has(budget.caller) });
        charged.add(budget.caller);
      } catch (error) {
        for (const reader of readers) if (reader.budget === budget) leave(reader, error);
      }
    }
    ending.signal.throwIfAborted();
  }

  function leave(reader: Reader, reason: unknown): void {
    if (!readers.delete(reader)) return;
    reader.left = { reason };
    reader.stopWaiting(reason);
    if (readers.size > 0) return;
    // Its requests end with the signal, and it gives back its slot when it is not read on.
    ending.abort(WALK_LEFT);
    onEnd();
  }
}

/** Not a race: a promise that takes part in many of them has reactions for each, which blocked at the end for 0.1 s. */
function unlessLeft<T>(reader: Reader, page: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    reader.stopWaiting = reject;
    page.then(resolve, reject);
    // The request of the page itself may have been refused to the reader.
    if (reader.left) reject(reader.left.reason);
  });
}
