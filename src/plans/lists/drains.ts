import type { Clock } from '../../clock.ts';
import { walkList, type Tail } from '../../paging/list-walk.ts';
import type { LookedUpList } from '../../paging/lookup/look-up.ts';
import { createSearches } from '../../paging/lookup/searches.ts';
import { createPace, type Pace } from '../../paging/pace.ts';
import type { FetchPage } from '../../paging/page.ts';
import { createPageIndexes } from '../../paging/parallel/page-indexes.ts';
import type { Position } from '../../paging/place/cursor.ts';
import { memoryOf, type ListMemory } from '../../paging/place/list-memory.ts';
import { pagesKnown } from '../../paging/price/pages-known.ts';
import { createSharedWalks, type JoinOptions } from '../../paging/shared-walks.ts';
import { createTotals, type Totals } from '../../paging/totals.ts';
import { walkInTurn } from '../../paging/walk-in-turn.ts';
import { createWalkSlots } from '../../paging/walk-slots.ts';
import type { WalkedPage } from '../../paging/walk.ts';
import type { Asking, Call, SendRequest } from '../call.ts';
import type { ListRecord } from '../output.ts';
import { watchedWalk, type ReadingWatch } from '../telemetry.ts';

/** The walks of all callers, and what they leave behind. */
export interface Drains {
  walk(
    list: DrainedList,
    options: WalkOptions,
  ): AsyncGenerator<WalkedPage<ListRecord>, void, undefined>;
  /** What earlier walks of a list left behind, by the list's key. */
  memoryOf(list: string): ListMemory;
  readonly totals: Totals;
  /** How many records a list had when it was walked last; undefined: nobody knows. */
  lengthOf(list: string): number | undefined;
  /** Drains that run now, and that wait for their turn. */
  readonly load: { readonly running: number; readonly waiting: number };
  /** What is known of a list when records of it are looked for, and the way to find the others. */
  lookedUp(list: SearchedDrain): Pick<LookedUpList<never>, 'index' | 'search' | 'onPlaces'>;
  /** A mutation is sent, or was answered: no walk from now on shares one from before. */
  separate(): void;
}

export interface DrainedList {
  /** Names the list with its filters. */
  readonly key: string;
  /** Names the upstream's field. */
  readonly field: string;
  /** Makes the requests for its pages, sent by whom it is told. */
  readonly fetcher: (context: Asking) => FetchPage<ListRecord>;
  /** What is selected of the records, where others may ask for the same; undefined: shared with nobody. */
  readonly selection: string | undefined;
  /** Below another object than the root. */
  readonly isNested: boolean;
  /** It came along with its parent, and nothing is asked for it. */
  readonly hasFirstPage?: boolean;
}

/** A list of the root that records are looked for in by their ids. */
export interface SearchedDrain extends Pick<DrainedList, 'key' | 'field' | 'fetcher'> {
  /** For people. */
  readonly name: string;
  /** Of whoever looks for them. */
  readonly cause: unknown;
}

export interface WalkOptions {
  readonly position: Position | null;
  readonly limit: number | undefined;
  readonly call: Call;
  /** All the records are kept until the end. */
  readonly keepsAll: boolean;
  readonly tail?: Tail | undefined;
}

export interface DrainLimits {
  /** Pages in flight per walk. */
  readonly drainConcurrency: number;
  /** Walks at a time. */
  readonly maxDrains: number;
  /** Records that all page indexes together remember. */
  readonly indexMaxIds: number;
  /** Records that a walk for somebody's ids goes over at most. */
  readonly drainMaxItems: number;
  /** Pages that one caller may cost; 0: no limit. */
  readonly pagesPerMinute: number;
}

export interface DrainParts extends DrainLimits {
  readonly clock: Clock;
  /** Names the token set in use: another one may see other lists. */
  readonly tokenSet: () => string | undefined;
}

/** Of fewer records no drain is made: the caller asks for them as for any page (interface, section 8). */
const SMALL = 50;

export function createDrains(
  { send, watch }: { readonly send: SendRequest; readonly watch: ReadingWatch },
  parts: DrainParts,
): Drains {
  const { drainConcurrency, maxDrains, indexMaxIds, drainMaxItems, clock, tokenSet } = parts;
  let indexes = createPageIndexes(indexMaxIds);
  const pace = createPace(drainConcurrency);
  const shared = createSharedWalks();
  const slots = createWalkSlots(maxDrains, clock);
  const searches = createSearches({ clock, maxItems: drainMaxItems, maxRecords: indexMaxIds });
  let totals = createTotals(clock);
  let set: string | undefined;

  const onIndex = watch.walkPlanned;

  return {
    separate,
    get load() {
      return { running: slots.taken, waiting: slots.waiting };
    },
    get totals() {
      forgetOtherSets();
      return totals;
    },
    lengthOf: (list) => {
      forgetOtherSets();
      const { pages, complete } = indexes.get(list) ?? { pages: [], complete: false };
      return complete ? pages.reduce((sum, { count }) => sum + count, 0) : undefined;
    },
    memoryOf: (list) => {
      forgetOtherSets();
      return memoryOf(indexes, list);
    },
    lookedUp: (list) => {
      forgetOtherSets();
      const its = indexes;
      return {
        index: its.get(list.key),
        onPlaces: watch.placesLookedUp,
        search: (identities, tried, seeker) =>
          searches.find(
            {
              ...list,
              index: () => its.get(list.key),
              // It takes no turn of the drains: somebody may wait for one record, and there is one walk a list.
              walk: (hold, leaving, pay) =>
                watchedWalk(
                  { watch, kind: 'search', list: list.field, cause: list.cause },
                  (cause) => {
                    const either = () => AbortSignal.any([leaving, hold.left]);
                    const asking = drainRequests(send, pace, either, pay, cause);
                    const fetchPage = hold.held(list.fetcher(asking));
                    const walkable = { ...list, indexes: its, pace, fetchPage, onIndex };
                    return walkList(walkable, { position: null, signal: leaving });
                  },
                ),
            },
            identities,
            tried,
            seeker,
          ),
      };
    },
    walk: (list, { position, limit, call, keepsAll, tail }) => {
      forgetOtherSets();
      const walkable = { ...list, indexes, pace };
      if (limit !== undefined && limit <= SMALL) {
        const { signal } = call;
        return walkList(
          { ...walkable, fetchPage: list.fetcher(call) },
          { position, limit, signal },
        );
      }
      const { pages: meter } = call;
      meter.afford(pagesKnown(indexes.get(list.key), { position, limit, tail }));
      const begin: JoinOptions<ListRecord>['begin'] = (from, signal, pay) =>
        watchedWalk({ watch, kind: 'drain', list: list.field, cause: call.cause }, (cause) => {
          const fetchPage = list.fetcher(drainRequests(send, pace, () => signal, pay, cause));
          const turn = { slots, owner: meter.account.name, operation: meter, signal };
          return walkInTurn(turn, (takeTurn) => {
            const inTurn: typeof fetchPage = async (request, of) => {
              if (request.after !== null || !list.hasFirstPage) await takeTurn();
              return fetchPage(request, of);
            };
            return walkList(
              { ...walkable, onIndex, fetchPage: inTurn },
              { position: from ?? position, limit, tail, signal },
            );
          });
        });
      const name = JSON.stringify([list.key, list.selection, position, limit]);
      const { signal } = call;
      return list.selection === undefined
        ? begin(null, signal, (pages) => meter.pay(pages))
        : shared.join(name, { begin, signal, keepsAll, meter });
    },
  };

  function forgetOtherSets(): void {
    const setNow = tokenSet();
    const isAnother = set !== undefined && set !== setNow;
    set = setNow;
    if (!isAnother) return;
    // New ones: a walk that is under way leaves what it saw with the old.
    indexes = createPageIndexes(indexMaxIds);
    separate();
  }

  function separate(): void {
    shared.separate();
    searches.separate();
    totals = createTotals(clock);
  }
}

/**
 * Requests of a walk, which belongs to nobody alone; each ends with the signal that is given for it.
 *
 * @param pay charges those who wait for the walk; where nobody can pay, it aborts the signal
 * @param cause of whoever began it
 */
export function drainRequests(
  send: SendRequest,
  pace: Pace,
  signalNow: () => AbortSignal,
  pay: (pages: number) => void,
  cause: unknown,
): Asking {
  return {
    cause,
    ask: async (request) => {
      const signal = signalNow();
      pay(request.pages);
      signal.throwIfAborted();
      const paced = pace.begin();
      const onPressure = paced.pressed;
      const answer = await send(request, { signal, priority: 'drain', onPressure, cause });
      paced.arrived();
      return answer;
    },
  };
}
