import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Position } from './cursor.ts';
import { WALK_LEFT } from './failures.ts';
import { spendTogether, type PageBudget } from './page-budget.ts';
import type { Identified } from './page.ts';
import { positionOf, type WalkedPage, type WalkedPages } from './walk.ts';

/** Begins a walk behind a position; null: where all walks of this name begin. */
export type BeginWalk<R> = (position: Position | null, readers: WalkReaders) => WalkedPages<R>;

/** The readers of a walk, as the walk sees them. */
export interface WalkReaders {
  /** Aborted when the walk is not needed any more. */
  readonly signal: AbortSignal;
  /** Call it before pages are requested. Readers that cannot afford them are refused. */
  spend(pages: number): void;
}

interface ReaderOptions {
  /** Spends for all pages that are requested while the reader follows the walk. */
  readonly budget: PageBudget;
  readonly signal: AbortSignal;
  /**
   * Whether the reader keeps all records until the end anyway, so that the walk may keep its pages for later readers.
   */
  readonly keepsAll?: boolean;
}

interface SharedWalkOptions<R> {
  readonly begin: BeginWalk<R>;
  /** The page at which readers join. Default: the first one. */
  readonly joinAt?: 'current';
  /** Called for each page before readers get it. */
  readonly onPage?: (page: WalkedPage<R>) => void;
  readonly onEnd?: (failure: { readonly error: unknown } | undefined) => void;
}

interface Reader {
  readonly budget: PageBudget;
  readonly keepsAll: boolean;
  /** The number of its next page. */
  next: number;
  /** Why it cannot afford the pages. */
  refused?: { readonly error: unknown };
}

/** The most pages kept for slower readers, and for those that join later. A reader further behind continues alone. */
const PAGES_KEPT = 16;
/** The most bytes of these pages. The last page is kept whatever its size. */
const BYTES_KEPT = 16 * 1024 * 1024;

/** A reader that finds this many pages already fetched lets other requests be served first. */
const PAGES_PER_TURN = 8;

/**
 * One walk of a list with several readers: identical drains read the records, and lookups of records by their ids read
 * the records' positions. A page is fetched when the fastest reader needs it. All readers spend for it together, and
 * each can leave without an effect on the others. The walk ends when the last one leaves.
 */
export class SharedWalk<R extends Identified> {
  readonly #options: SharedWalkOptions<R>;
  readonly #pages: WalkedPages<R>;
  readonly #ending = new AbortController();
  readonly #readers = new Set<Reader>();
  #kept: WalkedPage<R>[] = [];
  /** The number of pages that are no longer kept. */
  #dropped = 0;
  /** Set when the last reader leaves. Resolves when the walk is over: a page may still arrive before that. */
  left: Promise<unknown> | undefined;
  #over: { readonly failure?: { readonly error: unknown } } | undefined;
  #reading: Promise<void> | undefined;
  /** Resolves when waiting readers have to check again. */
  #changed = Promise.withResolvers<void>();

  constructor(options: SharedWalkOptions<R>) {
    this.#options = options;
    this.#pages = options.begin(null, {
      signal: this.#ending.signal,
      spend: (pages) => this.#spend(pages),
    });
  }

  /** Whether a reader that joins now still gets the first page. */
  get keepsStart(): boolean {
    return this.#dropped === 0 && !this.#over;
  }

  /** Reads the walk from its first page, or from its current one: see `joinAt`. */
  read(options: ReaderOptions): WalkedPages<R> {
    const { budget, keepsAll = false, signal } = options;
    const current = this.#dropped + this.#kept.length;
    const next = this.#options.joinAt === 'current' ? current : 0;
    const reader: Reader = { budget, keepsAll, next };
    // It counts from now on, not from its first page on: otherwise the walk could end in between.
    this.#readers.add(reader);
    const leave = () => this.#leave(reader);
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    return this.#follow(reader, signal, leave);
  }

  async *#follow(reader: Reader, signal: AbortSignal, leave: () => void): WalkedPages<R> {
    let last: WalkedPage<R> | undefined;
    let read = 0;
    try {
      for (;;) {
        signal.throwIfAborted();
        if (reader.refused) throw reader.refused.error;
        if (reader.next < this.#dropped) break;
        const page = this.#kept[reader.next - this.#dropped];
        if (page) {
          reader.next += 1;
          if (page.records.length > 0) last = page;
          yield page;
          read += 1;
          if (read % PAGES_PER_TURN === 0) await nextTurn();
          continue;
        }
        if (this.#over?.failure) throw this.#over.failure.error;
        if (this.#over) return;
        void this.#readNext();
        await this.#changed.promise;
      }
    } finally {
      signal.removeEventListener('abort', leave);
      this.#leave(reader);
    }
    // Its next page is no longer kept.
    const end = last?.records.list.at(-1);
    const position = last && end ? positionOf(last, end) : null;
    yield* this.#options.begin(position, onlyReader(reader.budget, signal));
  }

  #readNext(): Promise<void> {
    return (this.#reading ??= this.#readPage());
  }

  async #readPage(): Promise<void> {
    try {
      const { done, value: page } = await this.#pages.next();
      if (done) return this.#end();
      this.#options.onPage?.(page);
      this.#kept.push(page);
      this.#drop();
    } catch (error) {
      this.#end({ error });
    } finally {
      this.#reading = undefined;
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
    if (surplus <= 0) return;
    this.#kept.splice(0, surplus);
    this.#dropped += surplus;
  }

  #spend(pages: number): void {
    const refused = spendTogether(
      Array.from(this.#readers, ({ budget }) => budget),
      pages,
    );
    if (refused.size === 0) return;
    for (const reader of this.#readers) {
      if (!refused.has(reader.budget)) continue;
      reader.refused = { error: refused.get(reader.budget) };
      this.#leave(reader);
    }
  }

  #leave(reader: Reader): void {
    if (!this.#readers.delete(reader)) return;
    this.#wakeReaders();
    this.#drop();
    if (this.#readers.size > 0 || this.#over) return;
    this.#end({ error: WALK_LEFT });
    this.left = this.#pages.return().catch(() => {});
  }

  #end(failure?: { readonly error: unknown }): void {
    if (this.#over) return;
    this.#over = failure ? { failure } : {};
    this.#ending.abort(WALK_LEFT);
    this.#options.onEnd?.(failure);
  }
}

/** Returns how many of the first pages exceed the limits. */
function surplusOf(pages: readonly WalkedPage<Identified>[]): number {
  let bytes = 0;
  let kept = 0;
  for (const { records } of pages.toReversed()) {
    bytes += records.page.memory ?? 0;
    if (kept > 0 && (kept >= PAGES_KEPT || bytes > BYTES_KEPT)) break;
    kept += 1;
  }
  return pages.length - kept;
}

/** Returns the readers of a walk that is not shared. */
export function onlyReader(budget: PageBudget, signal: AbortSignal): WalkReaders {
  return {
    signal,
    spend: (pages) => budget.spend(pages),
  };
}

/** Keeps the current walks that drains share. */
export function createSharedWalks() {
  let walks = new Map<string, SharedWalk<Identified>>();
  return {
    /** Joins the walk of this name, or begins it. It ends when its last reader leaves. */
    join: <R extends Identified>(
      name: string,
      begin: BeginWalk<R>,
      options: ReaderOptions,
    ): WalkedPages<R> => {
      const known = walks.get(name);
      if (known?.keepsStart) return (known as unknown as SharedWalk<R>).read(options);
      const at = walks;
      const begun = new SharedWalk<R>({
        begin,
        onEnd: () => {
          if (at.get(name) === (begun as unknown)) at.delete(name);
        },
      });
      walks.set(name, begun as unknown as SharedWalk<Identified>);
      return begun.read(options);
    },
    /** Walks that begin from now on share nothing with the current ones. */
    separate: (): void => {
      walks = new Map();
    },
  };
}
