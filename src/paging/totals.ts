import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { WALK_LEFT } from './page.ts';

/*
 * How old a total may be
 *
 *      0                 TOTAL_COUNT_SECONDS                2 x TOTAL_COUNT_SECONDS
 *      ├────────────────────────┼────────────────────────────────┼──────────────────────────>
 *      returned from memory     returned from memory, and        counted before it is returned
 *                               renewed in the background
 *
 * The age of a total is the time since its walk began: it may not include records that were inserted later. Each walk
 * of a whole list renews the total, whatever the walk was for.
 */

interface KeptTotal {
  readonly total: number;
  /** When its walk began, by `clock.elapsed()`. */
  readonly since: number;
}

/** The most totals kept: callers may send any number of filters, and each parent has its own nested list. */
const MAX_TOTALS = 10_000;

/** Remembers the number of records of each list. */
export class Totals {
  readonly #clock: Pick<Clock, 'elapsed'>;
  readonly #keptMs: number;
  readonly #totals = new LRUCache<string, KeptTotal>({ max: MAX_TOTALS });
  /** The lists that are counted in the background. */
  readonly #counting = new Set<string>();
  #ending = new AbortController();

  /** @param seconds how long a total is returned without renewing it; 0: it is always counted */
  constructor(clock: Pick<Clock, 'elapsed'>, seconds: number) {
    this.#clock = clock;
    this.#keptMs = seconds * 1000;
  }

  /**
   * Returns the total of a list; undefined if it has to be counted first.
   *
   * @param renew walks the whole list in the background, if the total is old. It must call `begin`, as `walkList` does
   */
  of(list: string, renew: (signal: AbortSignal) => AsyncIterable<unknown>): number | undefined {
    const kept = this.#totals.get(list);
    const age = this.#clock.elapsed() - (kept?.since ?? -Infinity);
    if (age >= 2 * this.#keptMs) return undefined;
    if (age >= this.#keptMs && !this.#counting.has(list)) void this.#count(list, renew);
    return kept?.total;
  }

  /** Call it when a walk of a whole list begins. @returns takes the number of records at its end */
  begin(list: string): (total: number) => void {
    const since = this.#clock.elapsed();
    const { signal } = this.#ending;
    return (total) => {
      if (!signal.aborted) this.#totals.set(list, { total, since });
    };
  }

  /** Forgets all totals, also those of walks that have begun: call it after a mutation, and at the end. */
  clear(): void {
    this.#ending.abort(WALK_LEFT);
    this.#ending = new AbortController();
    this.#totals.clear();
  }

  async #count(
    list: string,
    renew: (signal: AbortSignal) => AsyncIterable<unknown>,
  ): Promise<void> {
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
