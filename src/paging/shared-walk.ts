import { setImmediate as nextTurn } from 'node:timers/promises';
import { spendTogether, type PageBudget } from './page-budget.ts';
import { WALK_LEFT, type WalkedPage, type WalkedPages } from './walk.ts';

/** The readers of a walk, as the walk sees them. */
export interface WalkReaders {
  /** Aborted when no reader needs the walk any more. */
  readonly signal: AbortSignal;
  /** Call it for each page before it is requested. Readers that cannot afford it are refused. */
  spend(): void;
}

/**
 * Begins a walk.
 *
 * @param last the page behind which it begins; undefined: where all walks of this name begin
 */
export type BeginWalk<R> = (
  readers: WalkReaders,
  last: WalkedPage<R> | undefined,
) => WalkedPages<R>;

export interface ReaderOptions {
  /** Spends for all pages that are requested while the reader follows the walk. */
  readonly budget: PageBudget;
  readonly signal: AbortSignal;
  /** Whether the reader keeps all pages anyway, so that the walk may keep them for later readers. Default: false. */
  readonly keepsAll?: boolean;
}

interface Reader {
  readonly budget: PageBudget;
  readonly keepsAll: boolean;
  /** The number of its next page. */
  next: number;
  /** Why it cannot afford the next page. */
  refused?: { readonly error: unknown };
}

/** The most pages kept for slower readers, and for those that join later. A reader further behind continues alone. */
const PAGES_KEPT = 16;
/** The most bytes of these pages. The last page is kept whatever its size. */
const BYTES_KEPT = 16 * 1024 * 1024;
/** A reader that finds this many pages already read lets other requests be served first. */
const PAGES_PER_TURN = 8;

/** The current walks that equal drains share. */
export class SharedWalks {
  #walks = new Map<string, SharedWalk<unknown>>();

  /**
   * Joins the walk of this name, or begins it. A page is requested when the fastest reader needs it. Each reader can
   * leave without an effect on the others; the walk ends when the last one leaves.
   *
   * @param name names everything that the pages depend on: list, filters, selection, cursor
   */
  join<R>(name: string, begin: BeginWalk<R>, options: ReaderOptions): WalkedPages<R> {
    const known = this.#walks.get(name) as SharedWalk<R> | undefined;
    if (known?.keepsStart) return known.read(begin, options);
    const walks = this.#walks;
    const walk = new SharedWalk(begin, () => {
      if (walks.get(name) === walk) walks.delete(name);
    });
    walks.set(name, walk);
    return walk.read(begin, options);
  }

  /** Walks that begin from now on share nothing with the current ones: call it when a mutation begins, and ends. */
  separate(): void {
    this.#walks = new Map();
  }
}

/** One walk with several readers. */
class SharedWalk<R> {
  readonly #onEnd: () => void;
  readonly #pages: WalkedPages<R>;
  readonly #ending = new AbortController();
  readonly #readers = new Set<Reader>();
  #kept: WalkedPage<R>[] = [];
  /** The number of pages that are no longer kept. */
  #dropped = 0;
  #over: { readonly failure?: { readonly error: unknown } } | undefined;
  #isReading = false;
  /** Resolves when waiting readers have to look again. */
  #changed = Promise.withResolvers<void>();

  constructor(begin: BeginWalk<R>, onEnd: () => void) {
    this.#onEnd = onEnd;
    const { signal } = this.#ending;
    this.#pages = begin({ signal, spend: () => this.#spend() }, undefined);
  }

  /** Whether a reader that joins now still gets the first page. */
  get keepsStart(): boolean {
    return this.#dropped === 0 && !this.#over;
  }

  /** @param begin begins the walk of this reader alone, if it falls behind */
  read(begin: BeginWalk<R>, options: ReaderOptions): WalkedPages<R> {
    const { budget, signal, keepsAll = false } = options;
    const reader: Reader = { budget, keepsAll, next: 0 };
    // It counts from now on, not from its first page on: otherwise the walk could end in between.
    this.#readers.add(reader);
    const leave = () => this.#leave(reader);
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    return this.#follow(reader, begin, signal, leave);
  }

  async *#follow(
    reader: Reader,
    begin: BeginWalk<R>,
    signal: AbortSignal,
    leave: () => void,
  ): WalkedPages<R> {
    let last: WalkedPage<R> | undefined;
    try {
      while (reader.next >= this.#dropped) {
        signal.throwIfAborted();
        if (reader.refused) throw reader.refused.error;
        const page = this.#kept[reader.next - this.#dropped];
        if (page) {
          reader.next += 1;
          if (page.offsets.length > 0) last = page;
          yield page;
          if (reader.next % PAGES_PER_TURN === 0) await nextTurn();
        } else if (this.#over) {
          if (this.#over.failure) throw this.#over.failure.error;
          return;
        } else {
          void this.#readNext();
          await this.#changed.promise;
        }
      }
    } finally {
      signal.removeEventListener('abort', leave);
      this.#leave(reader);
    }
    // Its next page is no longer kept.
    yield* begin({ signal, spend: () => reader.budget.spend() }, last);
  }

  /** Reads one page for all who wait. */
  async #readNext(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const { done, value: page } = await this.#pages.next();
      if (done) return this.#end();
      this.#kept.push(page);
      this.#drop();
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

  #drop(): void {
    for (const reader of this.#readers) if (reader.keepsAll) return;
    const surplus = this.#readers.size > 0 ? surplusOf(this.#kept) : this.#kept.length;
    this.#kept.splice(0, surplus);
    this.#dropped += surplus;
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
    this.#drop();
    if (this.#readers.size > 0 || this.#over) return;
    this.#end({ error: WALK_LEFT });
    this.#pages.return().catch(() => {});
  }

  #end(failure?: { readonly error: unknown }): void {
    if (this.#over) return;
    this.#over = failure ? { failure } : {};
    this.#ending.abort(WALK_LEFT);
    this.#onEnd();
  }
}

/** Returns how many of the first pages exceed the limits. */
function surplusOf(pages: readonly WalkedPage[]): number {
  let bytes = 0;
  let kept = 0;
  for (const { page } of pages.toReversed()) {
    bytes += page.bytes;
    if (kept > 0 && (kept >= PAGES_KEPT || bytes > BYTES_KEPT)) break;
    kept += 1;
  }
  return pages.length - kept;
}
