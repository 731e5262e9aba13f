import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Position } from '../cursor.ts';
import { unlessAborted, WALK_LEFT } from '../failures.ts';
import { spendTogether, type PageBudget } from '../page-budget.ts';
import type { FetchPage, Identified } from '../page.ts';
import { positionOf, type WalkedPage, type WalkedPages } from '../walk.ts';

/** Begins a walk behind a position, or where all walks of this name begin if that is null. */
export type BeginWalk<R> = (position: Position | null, readers: WalkReaders) => WalkedPages<R>;

/** The readers of a walk, as the walk sees them. */
export interface WalkReaders {
  /** Aborted when the walk has no further use. */
  readonly signal: AbortSignal;
  /** The signal for one request: aborted as well when the last reader leaves before it has what it wanted. */
  requestSignal(): AbortSignal;
  /** To be called before pages are requested. Readers that cannot afford them are refused. */
  spend(pages: number): void;
  /** Lets requests out only while the walk has readers, and repeats one that was aborted when the last reader left. */
  held<T>(fetchPage: FetchPage<T>): FetchPage<T>;
}

export interface ReaderOptions {
  /** Spends for all pages that are requested while the reader follows the walk. */
  readonly budget: PageBudget;
  readonly signal: AbortSignal;
  /** The reader keeps all records until the end anyway, so the walk may keep its pages for readers that join later. */
  readonly keepsAll?: boolean;
}

export interface SharedWalkOptions<R> {
  readonly begin: BeginWalk<R>;
  /**
   * What the walk does without readers. `end` ends it. `rest` holds back its requests, which have to go through `held`,
   * until another reader joins. Readers of such a walk join it at its current page.
   */
  readonly whenLeft: 'end' | 'rest';
  /** Called for each page before a reader has it. */
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

/** Pages kept for slower readers, and for those that join later. A reader further behind walks on alone. */
const PAGES_KEPT = 16;
/** Bytes of these pages. The last one is kept whatever its size. */
const BYTES_KEPT = 16 * 1024 * 1024;

/** A reader that finds this many pages already fetched lets other requests be served first. */
const PAGES_PER_TURN = 8;

/**
 * One walk of a list with several readers: identical drains read the records, and lookups of records by their ids read
 * the records' positions. A page is fetched when the fastest reader needs it. All readers spend for it together, and
 * each can leave without an effect on the others.
 */
export class SharedWalk<R extends Identified> {
  readonly #options: SharedWalkOptions<R>;
  readonly #pages: WalkedPages<R>;
  readonly #ending = new AbortController();
  readonly #readers = new Set<Reader>();
  #kept: WalkedPage<R>[] = [];
  /** Pages that were kept once. */
  #dropped = 0;
  #whenLeft: 'end' | 'rest';
  #over: { readonly failure?: { readonly error: unknown } } | undefined;
  #reading: Promise<void> | undefined;
  /** Resolved when a reader that waits has to look again. */
  #changed = Promise.withResolvers<void>();
  /** There while requests are held back. */
  #gate: PromiseWithResolvers<void> | undefined;
  #requests = new AbortController();

  constructor(options: SharedWalkOptions<R>) {
    this.#options = options;
    this.#whenLeft = options.whenLeft;
    this.#pages = options.begin(null, {
      signal: this.#ending.signal,
      requestSignal: () =>
        options.whenLeft === 'end'
          ? this.#ending.signal
          : AbortSignal.any([this.#ending.signal, this.#requests.signal]),
      spend: (pages) => this.#spend(pages),
      held: (fetchPage) => this.#held(fetchPage),
    });
  }

  /** Whether a reader that joins now still gets the first page. */
  get keepsStart(): boolean {
    return this.#dropped === 0 && !this.#over;
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  /** Reads the walk from its first page, or from its current one where walks rest. */
  read(options: ReaderOptions): WalkedPages<R> {
    const { budget, keepsAll = false, signal } = options;
    const current = this.#dropped + this.#kept.length;
    const next = this.#options.whenLeft === 'rest' ? current : 0;
    const reader: Reader = { budget, keepsAll, next };
    // It counts from now on, not from its first page on: otherwise the walk could end in between.
    this.#readers.add(reader);
    this.#gate?.resolve();
    this.#gate = undefined;
    const leave = () => this.#leave(reader, { isDone: false });
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    return this.#follow(reader, signal, leave);
  }

  /** Ends the walk as soon as it has no readers. */
  retire(): void {
    this.#whenLeft = 'end';
    if (!this.hasReaders) this.#stop();
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
      this.#leave(reader, { isDone: true });
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
    const surplus = this.hasReaders ? surplusOf(this.#kept) : this.#kept.length;
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
      this.#leave(reader, { isDone: false });
    }
  }

  /** @param isDone the reader has what it wanted: the requests in flight may finish */
  #leave(reader: Reader, { isDone }: { readonly isDone: boolean }): void {
    if (!this.#readers.delete(reader)) return;
    if (!isDone) this.#wakeReaders();
    this.#drop();
    if (this.hasReaders || this.#over) return;
    if (this.#whenLeft === 'end') this.#stop();
    else void this.#rest(isDone);
  }

  async #rest(isDone: boolean): Promise<void> {
    this.#gate = Promise.withResolvers();
    if (!isDone) {
      this.#requests.abort(WALK_LEFT);
      this.#requests = new AbortController();
    }
    // What is in flight may be the end of the list. The first request that is held back stops this.
    while (!this.hasReaders && !this.#over) await this.#readNext();
  }

  #held<T>(fetchPage: FetchPage<T>): FetchPage<T> {
    return async (request, signal) => {
      for (;;) {
        while (this.#gate) await unlessAborted(this.#gate.promise, signal);
        const { signal: left } = this.#requests;
        try {
          return await fetchPage(request, AbortSignal.any([signal, left]));
        } catch (error) {
          if (signal.aborted || !left.aborted) throw error;
        }
      }
    };
  }

  #stop(): void {
    if (this.#over) return;
    this.#end({ error: WALK_LEFT });
    void this.#pages.return().catch(() => {});
  }

  #end(failure?: { readonly error: unknown }): void {
    if (this.#over) return;
    this.#over = failure ? { failure } : {};
    this.#ending.abort(WALK_LEFT);
    this.#options.onEnd?.(failure);
  }
}

/** How many of the first pages are too many. */
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

/** The readers of a walk that is not shared. */
export function onlyReader(budget: PageBudget, signal: AbortSignal): WalkReaders {
  return {
    signal,
    requestSignal: () => signal,
    spend: (pages) => budget.spend(pages),
    held: (fetchPage) => fetchPage,
  };
}

/** The walks under way that drains share. */
export interface SharedWalks {
  /** Joins the walk of this name, or begins it. It ends when its last reader leaves. */
  join<R extends Identified>(
    name: string,
    begin: BeginWalk<R>,
    options: ReaderOptions,
  ): WalkedPages<R>;
  /** Walks that begin from now on share nothing with those under way. */
  separate(): void;
}

export function createSharedWalks(): SharedWalks {
  let walks = new Map<string, SharedWalk<Identified>>();
  return {
    join: <R extends Identified>(name: string, begin: BeginWalk<R>, options: ReaderOptions) => {
      const there = walks.get(name);
      if (there?.keepsStart) return (there as unknown as SharedWalk<R>).read(options);
      const at = walks;
      const begun = new SharedWalk<R>({
        begin,
        whenLeft: 'end',
        onEnd: () => {
          if (at.get(name) === (begun as unknown)) at.delete(name);
        },
      });
      walks.set(name, begun as unknown as SharedWalk<Identified>);
      return begun.read(options);
    },
    separate: () => {
      walks = new Map();
    },
  };
}
