import { spendTogether, type PageBudget } from './page-budget.ts';
import { WALK_LEFT } from './page.ts';

/** The readers of a walk, as the walk sees them. */
export interface WalkReaders {
  /** Aborted when no reader needs the walk any more. */
  readonly signal: AbortSignal;
  /** Call it for each page before it is requested. Readers that cannot afford it are refused. */
  spend(): void;
}

/** A walk as its readers see it: its pages, or what they need of each. */
type Walk<T> = AsyncGenerator<T, void, undefined>;

export interface ReaderOptions {
  /** Spends for all pages that are requested while the reader follows the walk. */
  readonly budget: PageBudget;
  readonly signal: AbortSignal;
}

interface Reader {
  readonly budget: PageBudget;
  /** Rejects when the reader leaves, or cannot afford the next page. */
  readonly left: Promise<never>;
  leave(reason: unknown): void;
}

/** The current walks that equal drains share. */
export class SharedWalks {
  #walks = new Map<string, SharedWalk<unknown>>();

  /**
   * Joins the walk of this name, or begins it. A page is requested when the fastest reader needs it, and kept for later
   * readers until the walk is over. Each reader can leave without an effect on the others; the walk ends when the last
   * one leaves.
   *
   * @param name names everything that the pages depend on: list, filters, selection, cursor
   */
  join<T>(name: string, begin: (readers: WalkReaders) => Walk<T>, options: ReaderOptions): Walk<T> {
    const known = this.#walks.get(name) as SharedWalk<T> | undefined;
    if (known) return known.read(options);
    const walks = this.#walks;
    const walk = new SharedWalk(begin, () => walks.delete(name));
    walks.set(name, walk);
    return walk.read(options);
  }

  /** Walks that begin from now on share nothing with the current ones: call it when a mutation begins, and ends. */
  separate(): void {
    this.#walks = new Map();
  }
}

/** One walk with several readers. */
class SharedWalk<T> {
  readonly #onEnd: () => void;
  readonly #walk: Walk<T>;
  readonly #ending = new AbortController();
  readonly #readers = new Set<Reader>();
  /** The pages that were requested so far, and the end or the failure of the walk. */
  readonly #pages: Promise<IteratorResult<T, void>>[] = [];

  constructor(begin: (readers: WalkReaders) => Walk<T>, onEnd: () => void) {
    this.#onEnd = onEnd;
    const { signal } = this.#ending;
    this.#walk = begin({ signal, spend: () => this.#spend() });
  }

  read({ budget, signal }: ReaderOptions): Walk<T> {
    const left = Promise.withResolvers<never>();
    // Nobody may be waiting.
    left.promise.catch(() => {});
    const reader: Reader = { budget, left: left.promise, leave: left.reject };
    // It counts from now on, not from its first page on: otherwise the walk could end in between.
    this.#readers.add(reader);
    const leave = () => this.#leave(reader, signal.reason);
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    return this.#follow(reader, () => {
      // The signal may outlive many walks.
      signal.removeEventListener('abort', leave);
      leave();
    });
  }

  async *#follow(reader: Reader, onEnd: () => void): Walk<T> {
    try {
      for (let at = 0; ; at += 1) {
        const page = this.#readers.has(reader) ? this.#page(at) : reader.left;
        const { done, value } = await Promise.race([page, reader.left]);
        if (done) return;
        yield value;
      }
    } finally {
      onEnd();
    }
  }

  /** Requests a page for the first reader who needs it. */
  #page(at: number): Promise<IteratorResult<T, void>> {
    const known = this.#pages[at];
    if (known) return known;
    const page = this.#walk.next();
    this.#pages.push(page);
    page.then(
      ({ done }) => done && this.#end(),
      () => this.#end(),
    );
    return page;
  }

  #spend(): void {
    const refused = spendTogether(new Set(Array.from(this.#readers, ({ budget }) => budget)));
    for (const reader of this.#readers) {
      if (refused.has(reader.budget)) this.#leave(reader, refused.get(reader.budget));
    }
    this.#ending.signal.throwIfAborted();
  }

  #leave(reader: Reader, reason: unknown): void {
    if (!this.#readers.delete(reader)) return;
    reader.leave(reason);
    // Its requests end with the signal, and it gives back its slot when it is not read on.
    if (this.#readers.size === 0) this.#end();
  }

  #end(): void {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort(WALK_LEFT);
    this.#onEnd();
  }
}
