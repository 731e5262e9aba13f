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
import type { Call, Requester, SendRequest } from '../call.ts';
import type { ListRecord } from '../output.ts';
import { reportedWalk, type ReadingTelemetry } from '../telemetry.ts';

/** Runs the walks of all callers, and keeps what they leave behind. */
export interface Drains {
  walk(
    list: DrainedList,
    options: DrainArguments,
  ): AsyncGenerator<WalkedPage<ListRecord>, void, undefined>;
  /** Returns what earlier walks of a list left behind. @param list its key */
  memoryOf(list: string): ListMemory;
  readonly totals: Totals;
  /** Returns how many records a list had at its last whole walk; undefined if it was not walked. */
  lengthOf(list: string): number | undefined;
  /** Drains that run, and drains that wait for their turn. */
  readonly load: { readonly running: number; readonly waiting: number };
  /** Returns what is known of the positions in a list, and the walk that finds the unknown ones. */
  lookup(list: LookupList): Pick<LookedUpList<never>, 'index' | 'search' | 'onPlaces'>;
  /** Walks that start after this call share nothing with earlier ones. Called before and after a mutation. */
  separate(): void;
}

export interface DrainedList {
  /** Names the list and its filters. */
  readonly key: string;
  /** The upstream's field. */
  readonly field: string;
  /** Fetches its pages with requests that this requester sends. */
  readonly fetcher: (requester: Requester) => FetchPage<ListRecord>;
  /** Names what is selected of the records, so that equal drains can share a walk; undefined: no sharing. */
  readonly selection: string | undefined;
  readonly isNested: boolean;
  /** Whether the request for its parent had the first page inlined, so that it needs no request. */
  readonly hasInlinedPage?: boolean;
}

/** A list at the root in which records are looked up by their ids. */
export interface LookupList extends Pick<DrainedList, 'key' | 'field' | 'fetcher'> {
  /** For messages. */
  readonly name: string;
  /** The cause of the lookup, for telemetry. */
  readonly cause: unknown;
}

export interface DrainArguments {
  readonly position: Position | null;
  readonly limit: number | undefined;
  readonly call: Call;
  /** Whether the caller keeps all records until the end. */
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
  /** Records that the walk of a lookup reads at most. */
  readonly drainMaxItems: number;
  /** Pages that one caller may cost in a minute; 0: no limit. */
  readonly pagesPerMinute: number;
}

export interface DrainParts extends DrainLimits {
  readonly clock: Clock;
  /** Names the token set in use. With another one the lists may be different. */
  readonly tokenSet: () => string | undefined;
}

/** Up to so many records are read like any page, without a turn of the drains (interface, section 8). */
const SMALL = 50;

export function createDrains(
  { send, telemetry }: { readonly send: SendRequest; readonly telemetry: ReadingTelemetry },
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

  const onIndex = telemetry.walkPlanned;

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
    lookup: (list) => {
      forgetOtherSets();
      const its = indexes;
      return {
        index: its.get(list.key),
        onPlaces: telemetry.placesLookedUp,
        search: (identities, tried, seeker) =>
          searches.find(
            {
              ...list,
              index: () => its.get(list.key),
              // It takes no turn of the drains: a caller waits for one record, and a list has one such walk.
              walk: (hold, leaving, pay) =>
                reportedWalk(
                  { telemetry, kind: 'search', list: list.field, cause: list.cause },
                  (cause) => {
                    const either = () => AbortSignal.any([leaving, hold.left]);
                    const requester = drainRequester(send, pace, either, pay, cause);
                    const fetchPage = hold.held(list.fetcher(requester));
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
        reportedWalk({ telemetry, kind: 'drain', list: list.field, cause: call.cause }, (cause) => {
          const fetchPage = list.fetcher(drainRequester(send, pace, () => signal, pay, cause));
          const turn = { slots, owner: meter.account.name, operation: meter, signal };
          return walkInTurn(turn, (takeTurn) => {
            const inTurn: typeof fetchPage = async (request, of) => {
              if (request.after !== null || !list.hasInlinedPage) await takeTurn();
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
    // New ones, because walks under way still write what they read into the old ones.
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
 * Sends the requests of a walk that several readers may share.
 *
 * @param signalNow returns the signal that aborts the next request
 * @param pay charges the readers of the walk; aborts that signal if none of them can pay
 * @param cause of the reader that started the walk
 */
function drainRequester(
  send: SendRequest,
  pace: Pace,
  signalNow: () => AbortSignal,
  pay: (pages: number) => void,
  cause: unknown,
): Requester {
  return {
    cause,
    request: async (request) => {
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
