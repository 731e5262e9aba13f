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
  /** Why it cannot afford the next page. */
  refused?: { readonly error: unknown };
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
  readonly #pages: T[] = [];
  #over: { readonly failure?: { readonly error: unknown } } | undefined;
  #isReading = false;
  /** Resolves when waiting readers have to look again. */
  #changed = Promise.withResolvers<void>();

  constructor(begin: (readers: WalkReaders) => Walk<T>, onEnd: () => void) {
    this.#onEnd = onEnd;
    const { signal } = this.#ending;
    this.#walk = begin({ signal, spend: () => this.#spend() });
  }

  read({ budget, signal }: ReaderOptions): Walk<T> {
    const reader: Reader = { budget };
    // It counts from now on, not from its first page on: otherwise the walk could end in between.
    this.#readers.add(reader);
    const leave = () => this.#leave(reader);
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    return this.#follow(reader, signal, leave);
  }

  async *#follow(reader: Reader, signal: AbortSignal, leave: () => void): Walk<T> {
    let read = 0;
    try {
      for (;;) {
        signal.throwIfAborted();
        if (reader.refused) throw reader.refused.error;
        if (read < this.#pages.length) {
          read += 1;
          yield this.#pages[read - 1]!;
        } else if (this.#over) {
          if (this.#over.failure) throw this.#over.failure.error;
          return;
        } else {
          void this.#readNext();
          await this.#changed.promise;
        }
      }
    } finally {
      // The signal may outlive many walks.
      signal.removeEventListener('abort', leave);
      leave();
    }
  }

  /** Reads one page for all who wait. */
  async #readNext(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const { done, value: page } = await this.#walk.next();
      if (done) return this.#end();
      this.#pages.push(page);
    } catch (error) {
      this.#end({ error });
    } finally {
      this.#isReading = false;
      this.#wakeReaders();
    }
  }

  #wakeReaders(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }

  #spend(): void {
    const refused = spendTogether(new Set(Array.from(this.#readers, ({ budget }) => budget)));
    if (refused.size === 0) return;
    for (const reader of this.#readers) {
      if (!refused.has(reader.budget)) continue;
      reader.refused = { error: refused.get(reader.budget) };
      this.#leave(reader);
    }
    this.#ending.signal.throwIfAborted();
  }

  #leave(reader: Reader): void {
    if (!this.#readers.delete(reader)) return;
    this.#wakeReaders();
    // Its requests end with the signal, and it gives back its slot when it is not read on.
    if (this.#readers.size === 0) this.#end({ error: WALK_LEFT });
  }

  #end(failure?: { readonly error: unknown }): void {
    if (this.#over) return;
    this.#over = failure ? { failure } : {};
    this.#ending.abort(WALK_LEFT);
    this.#onEnd();
  }
}
