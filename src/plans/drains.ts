import type { Clock } from '../clock.ts';
import type { Position } from '../paging/cursor.ts';
import { pagesToWalk, type PageIndex } from '../paging/page-index/page-index.ts';
import { walkList, type Tail } from '../paging/drain/list-walk.ts';
import { createPace } from '../paging/page-index/prefetch-pages.ts';
import type { LookupList } from '../paging/lookup/look-up.ts';
import { createLookupWalks } from '../paging/lookup/lookup-walks.ts';
import type { FetchPage } from '../paging/page.ts';
import { createPageIndexes, createTotals, type Totals } from '../paging/page-index/page-indexes.ts';
import { createSharedWalks, onlyReader, type BeginWalk } from '../paging/drain/shared-walk.ts';
import type { WalkedPage } from '../paging/walk.ts';
import { walkInTurn, createWalkSlots } from '../paging/drain/walk-slots.ts';
import type { Asker, Asking, Call, SendRequest } from './call.ts';
import { drainRequests } from './drain-requests.ts';
import type { ListRecord } from './list-record.ts';
import type { ReadingWatch } from './reading-watch.ts';
import { watchedWalk } from './watched-walk.ts';

/** The walks of all callers, and what they leave behind. */
export interface Drains {
  walk(
    list: DrainedList,
    options: WalkOptions,
  ): AsyncGenerator<WalkedPage<ListRecord>, void, undefined>;
  /** What earlier walks of a list left behind, by the list's key. */
  indexOf(list: string): () => PageIndex | undefined;
  readonly totals: Totals;
  /** How many records a list had when it was walked last; undefined: nobody knows. */
  lengthOf(list: string): number | undefined;
  /** Drains that run now, and that wait for their turn. */
  readonly load: { readonly running: number; readonly waiting: number };
  /** What is known of a list when records of it are looked for, and the way to find the others. */
  lookedUp(list: SearchedDrain): Pick<LookupList<never>, 'index' | 'walkFor' | 'onPositions'>;
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
  /** Who looks for them. */
  readonly asker: Asker;
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
  const lookupWalks = createLookupWalks({
    clock,
    maxItems: drainMaxItems,
    maxRecords: indexMaxIds,
  });
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
    indexOf: (list) => {
      forgetOtherSets();
      const its = indexes;
      return () => its.get(list);
    },
    lookedUp: (list) => {
      forgetOtherSets();
      const its = indexes;
      const { caller } = list.asker;
      return {
        index: its.get(list.key),
        onPositions: watch.placesLookedUp,
        walkFor: (identities, tried, options) =>
          lookupWalks.find(
            {
              ...list,
              index: () => its.get(list.key),
              // It takes no turn of the drains: somebody may wait for one record, and there is one walk a list.
              begin: (position, readers) =>
                watchedWalk(
                  { watch, kind: 'search', list: list.field, cause: list.asker.cause },
                  (cause) => {
                    const { signal, requestSignal, spend, held } = readers;
                    const asking = drainRequests(send, pace, requestSignal, spend, {
                      caller,
                      cause,
                    });
                    const fetchPage = held(list.fetcher(asking));
                    const walkable = { ...list, indexes: its, pace, fetchPage, onIndex };
                    return walkList(walkable, { position, signal });
                  },
                ),
            },
            identities,
            tried,
            options,
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
      const { pages: budget, caller } = call;
      budget.check(pagesToWalk(indexes.get(list.key), { position, limit, tail }));
      const begin: BeginWalk<ListRecord> = (from, { signal, requestSignal, spend }) =>
        watchedWalk({ watch, kind: 'drain', list: list.field, cause: call.cause }, (cause) => {
          const asking = drainRequests(send, pace, requestSignal, spend, { caller, cause });
          const fetchPage = list.fetcher(asking);
          const turn = { slots, owner: caller, operation: budget, signal };
          return walkInTurn(turn, (takeSlot) => {
            const inTurn: typeof fetchPage = async (request, of) => {
              if (request.after !== null || !list.hasFirstPage) await takeSlot();
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
        ? begin(null, onlyReader(budget, signal))
        : shared.join(name, begin, { budget, signal, keepsAll });
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
    lookupWalks.separate();
    totals = createTotals(clock);
  }
}
