import type { Clock } from '../../clock.ts';
import { identityHash } from '../identities.ts';
import type { Identified } from '../page.ts';
import { payTogether, type PageMeter } from '../page-budget.ts';
import { unlessAborted, WALK_LEFT } from '../failures.ts';
import type { WalkedPage } from '../walk.ts';
import { createHold, type Hold } from './hold.ts';
import type { Seeking, Sought } from './look-up.ts';
import type { LookupFailure } from './page-reader.ts';
import { placesIn, type KnownPage, type Place } from '../page-index/page-index.ts';

/**
 * Walks a list from its start; the requests for its pages go through the hold.
 *
 * @param pay to be called before pages are asked for
 */
export type SearchWalk = (
  hold: Hold,
  signal: AbortSignal,
  pay: (pages: number) => void,
) => AsyncGenerator<WalkedPage<Identified>, void, undefined>;

export interface SearchOptions {
  readonly walk: SearchWalk;
  readonly clock: Clock;
  /** Records that the walk goes over at most. */
  readonly maxItems: number;
  /** Records whose places are remembered while it is under way. */
  readonly maxRecords: number;
  /** What is said when there are more. */
  readonly tooLong: () => Error;
  /** Whether all places are remembered elsewhere when it is over. */
  readonly isIndexed: () => boolean;
  /** What is said to those who came too late to see all of the walk. */
  readonly notRemembered: () => Error;
}

/** Somebody who waits for places of records, and pays for what is asked for meanwhile. */
interface Seeker {
  readonly meter: PageMeter;
  readonly left: Set<string>;
  readonly places: Map<string, Place | null | LookupFailure>;
  /** It came when something had passed that nobody remembers. */
  readonly isLate: boolean;
  readonly done: () => void;
}

/**
 * One walk for all who look for records of a list. It gives each of them the places as it meets the records,
 * stands still while nobody waits, and goes on from there when somebody does again.
 */
export class Search {
  /** How the walk ended; undefined: it has not. */
  end: 'whole' | 'too long' | 'failed' | undefined;
  /** Why it failed, if it did. */
  failure: unknown;
  readonly #options: SearchOptions;
  readonly #hold = createHold();
  readonly #ending = new AbortController();
  /** By the identities that they wait for. */
  readonly #seekers = new Map<string, Set<Seeker>>();
  #passed: KnownPage[] = [];
  #remembered = 0;
  readonly #begun: number;
  #restingSince: number | undefined;
  #isRetired = false;

  constructor(options: SearchOptions) {
    this.#options = options;
    this.#begun = options.clock.elapsed();
    void this.#run();
  }

  /**
   * For how long what it tells may have been outdated, ms: since it was over, or since it began where it stands
   * still half-way, however often somebody made it go on. 0 while somebody waits for it.
   */
  get age(): number {
    if (this.#restingSince === undefined) return 0;
    return this.#options.clock.elapsed() - (this.end ? this.#restingSince : this.#begun);
  }

  /** Where it met those records, as far as that is remembered here. */
  passed(identities: readonly string[]): ReadonlyMap<string, Place> {
    return placesIn(this.#passed, identities);
  }

  /** For how long its failure is told to others as well, ms: as long as it took to come to it. */
  get failsFor(): number {
    return this.end === 'failed' && this.#passed.length > 0 ? this.#restingSince! - this.#begun : 0;
  }

  /** Whether it remembers where it met each record of the list. */
  get remembersAll(): boolean {
    const { maxRecords } = this.#options;
    return this.end === 'whole' && this.#passed.length > 0 && this.#remembered <= maxRecords;
  }

  /** Resolves when all places are known. @throws the reason of the signal */
  async find(identities: readonly string[], { signal, pages }: Seeking): Promise<Sought> {
    const places: Seeker['places'] = new Map(this.passed(identities));
    const left = new Set(identities.filter((identity) => !places.has(identity)));
    if (left.size === 0) return places;
    const { promise, resolve } = Promise.withResolvers<void>();
    const isLate = this.#remembered > this.#options.maxRecords;
    const seeker: Seeker = { meter: pages, left, places, isLate, done: resolve };
    for (const identity of left) {
      const there = this.#seekers.get(identity) ?? new Set();
      this.#seekers.set(identity, there.add(seeker));
    }
    this.#restingSince = undefined;
    this.#hold.release();
    try {
      await unlessAborted(promise, signal);
      return places;
    } catch (error) {
      this.#leave(seeker);
      throw error;
    }
  }

  close(): void {
    this.#ending.abort(WALK_LEFT);
  }

  /** Nobody joins it any more: it ends when the last one who waits has left. */
  retire(): void {
    this.#isRetired = true;
    if (this.#seekers.size === 0) this.close();
  }

  async #run(): Promise<void> {
    const { walk, maxItems, tooLong } = this.#options;
    let walked = 0;
    try {
      const pay = (pages: number) => this.#pay(pages);
      for await (const page of walk(this.#hold, this.#ending.signal, pay)) {
        this.#meet(page);
        walked += page.records.length;
        if (walked < maxItems || !page.hasNextPage) continue;
        this.#settle('too long', { error: tooLong() });
        return;
      }
      this.#settle('whole', null);
    } catch (error) {
      this.failure = error;
      this.#settle('failed', { error });
    }
  }

  #meet(page: WalkedPage<Identified>): void {
    this.#remember(page);
    for (const { record, place } of page.records) {
      if (record.identity !== null) this.#give(record.identity, { after: page.after, place });
    }
    if (this.#seekers.size === 0) this.#rest();
  }

  /** For those who come when it has passed already. */
  #remember({ after, records, size }: WalkedPage<Identified>): void {
    this.#remembered += records.length;
    if (this.#remembered > this.#options.maxRecords) return;
    const hashes = new Float64Array(size);
    for (const { record, place } of records) {
      if (record.identity !== null) hashes[place] = identityHash(record.identity);
    }
    this.#passed.push({ after, records: hashes });
  }

  #give(identity: string, place: Place | null | LookupFailure): void {
    for (const { left, places, isLate, done } of this.#seekers.get(identity) ?? []) {
      const isUnsure = place === null && isLate;
      places.set(identity, isUnsure ? { error: this.#options.notRemembered() } : place);
      left.delete(identity);
      if (left.size === 0) done();
    }
    this.#seekers.delete(identity);
  }

  /** Who cannot pay is told so; for the others it goes on. */
  #pay(pages: number): void {
    const seekers = new Set([...this.#seekers.values()].flatMap((some) => [...some]));
    const refused = payTogether(
      Array.from(seekers, ({ meter }) => meter),
      pages,
    );
    if (refused.size === 0) return;
    for (const seeker of seekers) {
      if (!refused.has(seeker.meter)) continue;
      const failure = { error: refused.get(seeker.meter) };
      for (const identity of seeker.left) seeker.places.set(identity, failure);
      this.#leave(seeker);
      seeker.done();
    }
  }

  #leave(seeker: Seeker): void {
    for (const identity of seeker.left) {
      const others = this.#seekers.get(identity);
      others?.delete(seeker);
      if (others?.size === 0) this.#seekers.delete(identity);
    }
    if (this.#seekers.size > 0 || this.end) return;
    this.#rest();
    this.#hold.leave();
  }

  #rest(): void {
    // What comes later, unasked for, makes nothing of before any newer.
    this.#restingSince ??= this.#options.clock.elapsed();
    this.#hold.pause();
    // Held, it would be kept for ever by the signals that it listens to.
    if (this.#isRetired) this.close();
  }

  /** @param verdict on those that were not met */
  #settle(end: NonNullable<Search['end']>, verdict: null | LookupFailure): void {
    this.end = end;
    for (const identity of this.#seekers.keys()) this.#give(identity, verdict);
    // Of a list that has no index, since not all its records have ids of their own, nobody else knows.
    if (end === 'too long' || (end === 'whole' && this.#options.isIndexed())) this.#passed = [];
    this.#rest();
  }
}
