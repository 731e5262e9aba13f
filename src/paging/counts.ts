import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { WALK_LEFT } from './failures.ts';
import { sizeOf, type Identified, type Page } from './page.ts';

/*
 * How old a total may be
 *
 *      0                 TOTAL_COUNT_SECONDS                2 x TOTAL_COUNT_SECONDS
 *      ├────────────────────────┼────────────────────────────────┼──────────────────────────>
 *      answered from memory     answered from memory, and        counted before it is answered
 *                               counted again in the background
 *
 * The age of a total is the time since its walk began: it may not include records that were inserted later. Each walk
 * of a whole list renews the total, whatever the walk was for. A count in the background begins only when a total is
 * requested, and stops when the total was not requested for TOTAL_COUNT_SECONDS. If it fails, the total is kept.
 */

interface KeptTotal {
  readonly total: number;
  /** When its walk began, by `clock.elapsed()`. */
  readonly since: number;
  requestedAt: number;
}

/** The most totals kept: callers may send any number of filters, and each parent has its own nested list. */
const MAX_TOTALS = 10_000;
/** The most lists counted in the background at the same time. */
const MAX_COUNTING = 2;
const RETRY_MS = 10_000;

/** Remembers the number of records of each list for some time after a count. */
export class Totals {
  readonly #clock: Clock;
  readonly #lastMs: number;
  readonly #totals = new LRUCache<string, KeptTotal>({ max: MAX_TOTALS });
  readonly #counting = new Set<string>();
  /** When a failed count may be repeated. */
  readonly #failed = new Map<string, number>();
  readonly #ending = new AbortController();

  /** @param seconds how long a total is answered from memory only; 0: it is always counted */
  constructor(clock: Clock, seconds: number) {
    this.#clock = clock;
    this.#lastMs = seconds * 1000;
  }

  /** Returns the total of a list, its age in ms, and whether it is old enough to be counted again. */
  of(list: string) {
    const kept = this.#totals.get(list);
    if (!kept) return undefined;
    const now = this.#clock.elapsed();
    const age = now - kept.since;
    if (age >= 2 * this.#lastMs) {
      this.#totals.delete(list);
      return undefined;
    }
    kept.requestedAt = now;
    return { total: kept.total, age, isOld: age >= this.#lastMs };
  }

  /** Call it when a walk of a whole list begins. @returns takes the number of records at its end */
  begin(list: string): (total: number) => void {
    const since = this.#clock.elapsed();
    return (total) => {
      const known = this.#totals.peek(list);
      if (this.#lastMs === 0 || (known && known.since > since)) return;
      this.#totals.set(list, { total, since, requestedAt: known?.requestedAt ?? since });
    };
  }

  /**
   * Counts a list in the background, unless its count is already running or has just failed, or too many other lists
   * are being counted.
   *
   * @param walk walks the whole list, and calls `begin`
   */
  countAgain(list: string, walk: (signal: AbortSignal) => AsyncIterable<unknown>): void {
    const counting = this.#counting;
    if (this.#ending.signal.aborted || counting.has(list) || counting.size >= MAX_COUNTING) return;
    const now = this.#clock.elapsed();
    for (const [other, until] of this.#failed) if (until <= now) this.#failed.delete(other);
    if (this.#failed.has(list)) return;
    counting.add(list);
    void this.#count(list, walk(this.#ending.signal)).finally(() => counting.delete(list));
  }

  async #count(list: string, pages: AsyncIterable<unknown>): Promise<void> {
    try {
      for await (const _ of pages) {
        const { requestedAt = -Infinity } = this.#totals.peek(list) ?? {};
        if (this.#clock.elapsed() - requestedAt > this.#lastMs) return;
      }
      this.#failed.delete(list);
    } catch {
      // A caller that needs the total once it is too old counts itself, and gets that count's error.
      this.#failed.set(list, this.#clock.elapsed() + RETRY_MS);
    }
  }

  /** Ends the counts in the background, and starts no more. */
  end(): void {
    this.#ending.abort(WALK_LEFT);
  }
}

/** The most lists whose counts are remembered: callers may send any number of filters. */
const MAX_LISTS = 1_000;

/**
 * Judges the counts that the service returns with its pages. Such a count may be that of its page only, or of another
 * list. So it is trusted for a list with its filters once a page with a next page had fewer records than the count, and
 * until a finished walk contradicts it. Lists are identified by their keys, which include their filters.
 */
export class ServiceCounts {
  readonly #lists = new LRUCache<string, 'believed' | 'refuted'>({ max: MAX_LISTS });

  /** Examines the count of any page of a list. */
  note(list: string, page: Page<Identified>): void {
    const { total, hasNextPage } = page;
    if (total === undefined || !hasNextPage || this.#lists.has(list)) return;
    this.#lists.set(list, total > sizeOf(page) ? 'believed' : 'refuted');
  }

  isBelieved(list: string): boolean {
    return this.#lists.get(list) === 'believed';
  }

  /** Whether the count of this list turned out to mean something else. */
  isRefuted(list: string): boolean {
    return this.#lists.get(list) === 'refuted';
  }

  /** Returns the total of a list, from its first page, noted before; undefined if the page does not show it. */
  totalFrom(list: string, page: Page<Identified>): number | undefined {
    const { total, hasNextPage } = page;
    if (hasNextPage) return this.isBelieved(list) ? total : undefined;
    return total === sizeOf(page) ? total : undefined;
  }

  /**
   * Compares the number of records of a finished walk with the counts of its first and last page.
   *
   * @returns the service's count if the walk met fewer records; otherwise undefined
   */
  check(
    list: string,
    { walked, before, after }: { walked: number; before: number; after: number },
  ): number | undefined {
    // It counts one page or another list, or stops at a limit of the service.
    if (walked > Math.max(before, after)) this.#lists.set(list, 'refuted');
    const least = Math.min(before, after);
    return walked < least && this.isBelieved(list) ? least : undefined;
  }
}
