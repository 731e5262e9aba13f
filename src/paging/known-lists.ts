import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { WALK_LEFT } from './page.ts';
import type { PageIndex } from './page-index.ts';

/*
 * What walks of whole lists leave: page indexes, and totals
 *
 * How old a total may be:
 *
 *      0                 TOTAL_COUNT_SECONDS                2 x TOTAL_COUNT_SECONDS
 *      ├────────────────────────┼────────────────────────────────┼──────────────────────────>
 *      returned from memory     returned from memory, and        counted before it is returned
 *                               renewed in the background
 *
 * The age of a total is the time since its walk began: it may not include records that were inserted later. Each walk
 * of a whole list renews the total, whatever the walk was for.
 */

interface KnownTotal {
  readonly total: number;
  /** When its walk began, by `clock.elapsed()`. */
  readonly began: number;
  /** When its walk ended. */
  readonly ended: number;
}

type Renew = (signal: AbortSignal) => AsyncIterable<unknown>;

/** The most totals kept: callers may send any number of filters, and each parent has its own nested list. */
const MAX_TOTALS = 10_000;
/** How long an id that a whole walk did not meet counts as missing. */
export const MISSING_MS = 30_000;
/** The memory of a list, and of a page, in hashes of records. */
const LIST_COST = 50;
const PAGE_COST = 4;

interface KnownListsOptions {
  readonly clock: Pick<Clock, 'elapsed'>;
  /** The most ids that all indexes together remember, as hashes; 0: no list has an index. */
  readonly maxIds: number;
  /** How long a total is returned without renewing it; 0: it is always counted. */
  readonly totalSeconds: number;
}

/** Keeps page indexes and totals, by the names of lists with their filters. The least recently used is dropped first. */
export class KnownLists {
  readonly #clock: Pick<Clock, 'elapsed'>;
  readonly #keptMs: number;
  readonly #totals = new LRUCache<string, KnownTotal>({ max: MAX_TOTALS });
  /** An index that is too large by itself is not kept. */
  readonly #indexes: LRUCache<string, PageIndex>;
  /** The lists that are counted in the background. */
  readonly #counting = new Set<string>();
  #ending = new AbortController();

  constructor({ clock, maxIds, totalSeconds }: KnownListsOptions) {
    this.#clock = clock;
    this.#keptMs = totalSeconds * 1000;
    this.#indexes = new LRUCache({ maxSize: Math.max(1, maxIds) });
  }

  indexOf(list: string): PageIndex | undefined {
    return this.#indexes.get(list);
  }

  /** Whether ids that are not in the index of the list are missing, because it was walked just now. */
  isComplete(list: string): boolean {
    const { ended = -Infinity } = this.#totals.get(list) ?? {};
    return this.#indexes.has(list) && this.#clock.elapsed() - ended < MISSING_MS;
  }

  /**
   * Returns the total of a list; undefined if it has to be counted first.
   *
   * @param renew walks the whole list in the background, if the total is old
   */
  totalOf(list: string, renew: Renew): number | undefined {
    const { total, began = -Infinity } = this.#totals.get(list) ?? {};
    const age = this.#clock.elapsed() - began;
    if (age >= 2 * this.#keptMs) return undefined;
    if (age >= this.#keptMs && !this.#counting.has(list)) void this.#count(list, renew);
    return total;
  }

  /** Call it when a walk of a whole list begins. @returns takes what it leaves at its end */
  begin(list: string): (total: number, index: PageIndex | undefined) => void {
    const began = this.#clock.elapsed();
    const { signal: outdated } = this.#ending;
    return (total, index) => {
      if (outdated.aborted) this.#totals.delete(list);
      else this.#totals.set(list, { total, began, ended: this.#clock.elapsed() });
      this.#indexes.delete(list);
      if (!index) return;
      const size = index.reduce((sum, { hashes }) => sum + PAGE_COST + hashes.length, LIST_COST);
      this.#indexes.set(list, index, { size });
    };
  }

  /**
   * Forgets all totals, also those of walks that have begun, and so which ids are missing: call it after a mutation, and
   * at the end.
   */
  forget(): void {
    this.#ending.abort(WALK_LEFT);
    this.#ending = new AbortController();
    this.#totals.clear();
  }

  async #count(list: string, renew: Renew): Promise<void> {
    this.#counting.add(list);
    const { signal } = this.#ending;
    try {
      for await (const _ of renew(signal)) if (signal.aborted) return;
    } catch {
      // Whoever needs the total once it is too old counts it, and gets that count's error.
    } finally {
      this.#counting.delete(list);
    }
  }
}
