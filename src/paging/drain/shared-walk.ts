import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Position } from '../cursor.ts';
import type { Identified } from '../page.ts';
import { payTogether, type PageMeter } from '../page-budget.ts';
import { unlessAborted, WALK_LEFT } from '../failures.ts';
import { positionOf, type WalkedPage } from '../walk.ts';

/** Walks under way, shared by all who ask for the same at the same time. */
export interface SharedWalks {
  /** Joins the walk of this name, or begins it. Leaving hurts nobody else; the last one ends the walk. */
  join<R extends Identified>(name: string, options: JoinOptions<R>): Pages<R>;
  /** Walks that begin from now on share nothing with those under way. */
  separate(): void;
}

export interface JoinOptions<R> {
  /**
   * @param position behind it; null: where the walk of this name begins
   * @param pay to be called before pages are asked for; aborts the signal where nobody can pay for them
   */
  readonly begin: (
    position: Position | null,
    signal: AbortSignal,
    pay: (pages: number) => void,
  ) => Pages<R>;
  /** Pays for what is asked for while it follows the walk. */
  readonly meter: PageMeter;
  readonly signal: AbortSignal;
  /** Keeps all the records anyway, so that the pages may be kept for others who come later. */
  readonly keepsAll: boolean;
}

type Pages<R> = AsyncGenerator<WalkedPage<R>, void, undefined>;

const PAGES_PER_TURN = 8;

/** Pages kept for those who read slower, or come later. Who is further behind walks on alone. */
const PAGES_KEPT = 16;

export function createSharedWalks(): SharedWalks {
  let walks = new Map<string, SharedWalk<Identified>>();
  return {
    join: <R extends Identified>(name: string, options: JoinOptions<R>) => {
      const there = walks.get(name);
      if (there?.canBeJoined) return (there as unknown as SharedWalk<R>).read(options);
      const at = walks;
      const begun = new SharedWalk<R>(options.begin, () => {
        if (at.get(name) === begun) at.delete(name);
      });
      walks.set(name, begun);
      return begun.read(options);
    },
    separate: () => {
      walks = new Map();
    },
  };
}

class SharedWalk<R extends Identified> {
  readonly #ending = new AbortController();
  readonly #pages: Pages<R>;
  readonly #onEnd: () => void;
  readonly #readers = new Set<Reader>();
  #kept: WalkedPage<R>[] = [];
  /** Pages that are no longer kept. */
  #dropped = 0;
  #pulling: Promise<void> | undefined;
  #isOver = false;
  #failure: { error: unknown } | undefined;

  constructor(begin: JoinOptions<R>['begin'], onEnd: () => void) {
    this.#pages = begin(null, this.#ending.signal, (pages) => this.#pay(pages));
    this.#onEnd = onEnd;
  }

  get canBeJoined(): boolean {
    return this.#dropped === 0 && !this.#isOver && !this.#ending.signal.aborted;
  }

  read({ begin, signal, keepsAll, meter }: JoinOptions<R>): Pages<R> {
    const reader: Reader = { at: 0, keepsAll, meter };
    // From now on, and not when the first page is asked for: nobody may end it in between.
    this.#readers.add(reader);
    signal.addEventListener('abort', () => this.#leave(reader), { once: true });
    if (signal.aborted) this.#leave(reader);
    return this.#follow(reader, begin, signal);
  }

  async *#follow(reader: Reader, begin: JoinOptions<R>['begin'], signal: AbortSignal): Pages<R> {
    let last: Position | null = null;
    let read = 0;
    try {
      for (;;) {
        signal.throwIfAborted();
        if (reader.refused) throw reader.refused.error;
        if (reader.at < this.#dropped) break;
        const page = this.#kept[reader.at - this.#dropped];
        if (page) {
          reader.at += 1;
          const end = page.records.at(-1);
          if (end) last = positionOf(page, end);
          yield page;
          // One that comes late finds all pages there: others come to their turn in between.
          read += 1;
          if (read % PAGES_PER_TURN === 0) await nextTurn();
          continue;
        }
        if (this.#failure) throw this.#failure.error;
        if (this.#isOver) return;
        await unlessAborted((this.#pulling ??= this.#pull()), signal);
      }
    } finally {
      this.#leave(reader);
    }
    // So slow that its next page is not kept any more.
    yield* begin(last, signal, (pages) => reader.meter.pay(pages));
  }

  async #pull(): Promise<void> {
    try {
      const { done, value } = await this.#pages.next();
      if (done) this.#end();
      else this.#keep(value);
    } catch (error) {
      this.#failure = { error };
      this.#end();
    } finally {
      this.#pulling = undefined;
    }
  }

  #keep(page: WalkedPage<R>): void {
    this.#kept.push(page);
    this.#trim();
  }

  #trim(): void {
    const keepsAll = [...this.#readers].some((reader) => reader.keepsAll);
    const surplus = keepsAll ? 0 : this.#kept.length - PAGES_KEPT;
    if (surplus <= 0) return;
    this.#kept.splice(0, surplus);
    this.#dropped += surplus;
  }

  /** Who cannot pay leaves; for the others it goes on. */
  #pay(pages: number): void {
    const refused = payTogether(
      [...this.#readers].map(({ meter }) => meter),
      pages,
    );
    if (refused.size === 0) return;
    for (const reader of this.#readers) {
      if (!refused.has(reader.meter)) continue;
      reader.refused = { error: refused.get(reader.meter) };
      this.#leave(reader);
    }
  }

  #leave(reader: Reader): void {
    if (!this.#readers.delete(reader)) return;
    this.#trim();
    if (this.#readers.size > 0 || this.#isOver) return;
    this.#end();
    void this.#pages.return().catch(() => {});
  }

  #end(): void {
    this.#isOver = true;
    this.#ending.abort(WALK_LEFT);
    this.#onEnd();
  }
}

interface Reader {
  at: number;
  readonly keepsAll: boolean;
  readonly meter: PageMeter;
  /** It could not pay. */
  refused?: { readonly error: unknown };
}
