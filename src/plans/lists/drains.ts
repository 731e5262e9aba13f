import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import { codeOf } from '../../errors.ts';
import { ServiceCounts, Totals } from '../../paging/counts.ts';
import type { Position } from '../../paging/cursor.ts';
import { walkList, type PageSizes, type Tail } from '../../paging/list-walk.ts';
import { createLookupWalks, type LookupList } from '../../paging/look-up.ts';
import {
  createPageIndexes,
  pagesToWalk,
  recordsIn,
  type PageIndex,
} from '../../paging/page-index.ts';
import { PageBudget, type CallerBudgets } from '../../paging/page-budget.ts';
import type { FetchPage, Identified } from '../../paging/page.ts';
import { createPace, type Pace } from '../../paging/parallel-walk.ts';
import {
  createSharedWalks,
  onlyReader,
  type BeginWalk,
  type WalkReaders,
} from '../../paging/shared-walk.ts';
import { createWalkSlots, walkInTurn } from '../../paging/walk-slots.ts';
import type { WalkedPages } from '../../paging/walk.ts';
import { LARGEST_PAGE } from '../../schema/derived.ts';
import type { Execute } from '../../answers/answer-reader.ts';
import type { Sender } from '../../upstream/request.ts';
import type { Call, Requester, RequestOrigin } from '../call.ts';
import type { ListRecord } from '../output.ts';

export type Drains = ReturnType<typeof createDrains>;

export interface DrainedList {
  /** Names the list and its filters. */
  readonly key: string;
  /** The upstream's field. */
  readonly field: string;
  /** Fetches its pages with requests that this requester sends. */
  readonly fetcher: (requester: Requester) => FetchPage<ListRecord>;
  /** The same pages, with nothing of the records but their identities: see `IndexedList`. */
  readonly identities: (requester: Requester) => FetchPage<Identified>;
  /** The largest page that the service accepts for what is selected; undefined: it never refused one. */
  readonly sizeNow: () => number | undefined;
  readonly pageSizes: PageSizes | undefined;
  /** Names what is selected of the records, so that equal drains can share a walk; undefined: no sharing. */
  readonly selection: string | undefined;
  readonly isNested: boolean;
  /** Whether the request for its parent had the first page inlined, so that it needs no request. */
  readonly hasInlinedPage?: boolean;
}

/** A list at the root in which records are looked up by their ids. */
interface LookupSource extends Pick<
  DrainedList,
  'key' | 'field' | 'identities' | 'sizeNow' | 'pageSizes'
> {
  /** For messages. */
  readonly name: string;
  /** The caller of the lookup. */
  readonly origin: RequestOrigin;
}

export interface DrainArguments {
  readonly position: Position | null;
  readonly limit: number | undefined;
  readonly call: Call;
  /** Whether the caller keeps all records until the end. */
  readonly keepsAll: boolean;
  readonly tail?: Tail | undefined;
  /** Most of the records do not get into the answer: see `PageBudget.forOverhead`. */
  readonly isOverhead?: boolean;
}

/** The caller that a walk is charged to, and in whose turn it waits for a slot. */
interface SlotOwner extends RequestOrigin {
  readonly budget: PageBudget;
  /** See `WalkTurn`. */
  readonly operation: object;
}

export interface DrainParts {
  /** Pages in flight per walk, at most. */
  readonly drainConcurrency: number;
  /** Walks at a time; others wait for a slot. */
  readonly maxDrains: number;
  /** Records that all page indexes together remember. */
  readonly indexMaxIds: number;
  /** Records that the walk of a lookup reads, at most. */
  readonly drainMaxItems: number;
  /** Seconds for which totals are answered from memory. */
  readonly totalCountSeconds: number;
  readonly clock: Clock;
  /** Names the token set in use. With another one the lists may be different. */
  readonly tokenSet: () => string | undefined;
}

/** Receives what happens to walks. */
export interface WalkTelemetry {
  /**
   * @param outcome `whole`: the walk reached the end of the list; `stopped`: its readers left before; otherwise the
   *   code of the error that ended it
   */
  walkEnded(kind: WalkKind, outcome: WalkOutcome): void;
  /** @param hasIndex whether a page index lets the walk read pages in parallel */
  walkPlanned(hasIndex: boolean): void;
  /** A whole walk found fewer records than the service counted, at its beginning and at its end. */
  walkFellShort(list: string, met: number, counted: number): void;
  /** Of the records that were looked up by id: how many had a position in the page index, and how many had none. */
  positionsLookedUp(known: number, unknown: number): void;
}

/**
 * `drain`: a caller reads the list. `search`: the positions of records in it are looked up. `count`: it is counted again
 * in the background. A label of metrics.
 */
type WalkKind = 'drain' | 'search' | 'count';

type WalkOutcome = 'whole' | 'stopped' | { readonly code: unknown };

/** Runs the walks of all callers, and keeps their page indexes, totals and counts. */
export function createDrains(
  {
    execute,
    telemetry,
    callers,
  }: {
    readonly execute: Execute;
    readonly telemetry: WalkTelemetry;
    readonly callers: CallerBudgets;
  },
  parts: DrainParts,
) {
  const { drainConcurrency, maxDrains, indexMaxIds, drainMaxItems, clock, tokenSet } = parts;
  const newTotals = () => new Totals(clock, parts.totalCountSeconds);
  let indexes = createPageIndexes(indexMaxIds);
  const pace = createPace(drainConcurrency);
  const shared = createSharedWalks();
  const slots = createWalkSlots(maxDrains, clock);
  const lookupWalks = createLookupWalks({
    clock,
    maxItems: drainMaxItems,
    maxRecords: indexMaxIds,
  });
  let totals = newTotals();
  let counts = new ServiceCounts();
  let set: string | undefined;

  const onIndex = telemetry.walkPlanned;

  return {
    walk,
    /** Walks that start after this call share nothing with earlier ones. Called before and after a mutation. */
    separate,
    /** Drains that run, and drains that wait for their turn. */
    get load() {
      return { running: slots.taken, waiting: slots.waiting };
    },
    get totals() {
      forgetOtherSets();
      return totals;
    },
    get counts() {
      forgetOtherSets();
      return counts;
    },
    /**
     * Counts a list in the background. Its pages are charged to the gateway, as to a caller of this name, and it lets
     * every drain that waits begin first.
     */
    countAgain: (list: DrainedList): void => {
      totals.countAgain(list.key, async function* (signal) {
        const caller = 'gateway';
        const budget = new PageBudget(callers, { name: caller, mayDrain: true });
        const owner = { operation: budget, budget, caller, cause: undefined };
        const begin = walkInSlot('count', list, { position: null, limit: undefined }, owner);
        let records = 0;
        for await (const page of begin(null, onlyReader(budget, signal))) {
          records += page.records.length;
          if (records > drainMaxItems) throw new Error('The list is longer than DRAIN_MAX_ITEMS.');
          yield page;
          // A walk that rests gives back its slot.
          if (slots.waiting > 0) await nextTurn();
        }
      });
    },
    /** Ends what runs in the background. */
    close: () => totals.end(),
    /** Returns how many records a list had at its last whole walk; undefined if it was not walked. */
    lengthOf: (list: string): number | undefined => {
      forgetOtherSets();
      const index = indexes.get(list);
      return index?.complete ? recordsIn(index) : undefined;
    },
    /** Returns a function that reads the page index of a list. @param list its key */
    indexOf: (list: string): (() => PageIndex | undefined) => {
      forgetOtherSets();
      const indexesNow = indexes;
      return () => indexesNow.get(list);
    },
    /** Returns what is known of the positions in a list, and the walk that finds the unknown ones. */
    lookup: (list: LookupSource): Pick<LookupList<never>, 'shared' | 'walks' | 'onPositions'> => {
      forgetOtherSets();
      const indexesNow = indexes;
      const totalsNow = totals;
      const { caller, cause } = list.origin;
      return {
        shared: {
          ...list,
          index: () => indexesNow.get(list.key),
          // Not in a drain slot: a caller waits for one record, and each list has only one such walk.
          begin: (position, readers, unfinished) =>
            reportedWalk(telemetry, 'search', () => {
              const requester = drainRequester(execute, pace, readers, { caller, cause });
              const fetchIdentities = list.identities(requester);
              const fetched = { fetchPage: fetchIdentities, fetchIdentities };
              const known = { indexes: indexesNow, totals: totalsNow };
              const walkable = { ...list, ...known, pace, ...fetched, onIndex };
              return walkList(walkable, { position, unfinished, signal: readers.signal });
            }),
        },
        walks: lookupWalks,
        onPositions: telemetry.positionsLookedUp,
      };
    },
  };

  function walk(list: DrainedList, options: DrainArguments): WalkedPages<ListRecord> {
    const { position, limit, call, keepsAll, isOverhead = false } = options;
    forgetOtherSets();
    // A single page does not need a drain slot.
    if (limit !== undefined && limit <= LARGEST_PAGE) {
      const fetched = { fetchPage: list.fetcher(call), fetchIdentities: list.identities(call) };
      return walkList(
        { ...walkableNow(list), ...fetched },
        { position, limit, signal: call.signal },
      );
    }
    const { pages: operation, caller, cause, signal } = call;
    const budget = isOverhead ? operation.forOverhead : operation;
    const begin = walkInSlot('drain', list, options, { operation, budget, caller, cause });
    const name = JSON.stringify([list.key, list.selection, position, limit]);
    return list.selection === undefined
      ? begin(null, onlyReader(budget, signal))
      : shared.join(name, begin, { budget, signal, keepsAll });
  }

  function walkableNow(list: DrainedList) {
    const onShort = (met: number, counted: number) =>
      telemetry.walkFellShort(list.field, met, counted);
    return { ...list, indexes, pace, counts, totals, onShort };
  }

  /** Closures of a walk that several callers share must not refer to the call of the first: that ends earlier. */
  function walkInSlot(
    kind: 'drain' | 'count',
    list: DrainedList,
    { position, limit, tail }: Pick<DrainArguments, 'position' | 'limit' | 'tail'>,
    { operation, budget, caller, cause }: SlotOwner,
  ): BeginWalk<ListRecord> {
    // What pages of another size cost is known when they are read.
    if (list.sizeNow() === undefined) {
      budget.check(pagesToWalk(indexes.get(list.key), { position, limit, tail }));
    }
    const walked = walkableNow(list);
    return (from, readers) =>
      reportedWalk(telemetry, kind, () => {
        const { signal } = readers;
        const requester = drainRequester(execute, pace, readers, { caller, cause });
        const fetchPage = list.fetcher(requester);
        return walkInTurn({ slots, owner: caller, operation, signal }, (takeSlot) => {
          const inTurn =
            <R>(fetch: FetchPage<R>, needsSlot: (after: string | null) => boolean): FetchPage<R> =>
            (request, of) => {
              const taking = needsSlot(request.after) ? takeSlot() : undefined;
              return taking ? taking.then(() => fetch(request, of)) : fetch(request, of);
            };
          return walkList(
            {
              ...walked,
              onIndex,
              fetchPage: inTurn(fetchPage, (after) => after !== null || !list.hasInlinedPage),
              fetchIdentities: inTurn(list.identities(requester), () => true),
            },
            { position: from ?? position, limit, tail, signal },
          );
        });
      });
  }

  function forgetOtherSets(): void {
    const setNow = tokenSet();
    const isAnother = set !== undefined && set !== setNow;
    set = setNow;
    if (!isAnother) return;
    // New ones, because walks under way still write what they read into the old ones.
    indexes = createPageIndexes(indexMaxIds);
    counts = new ServiceCounts();
    separate();
  }

  function separate(): void {
    shared.separate();
    lookupWalks.separate();
    // New ones, because walks under way still write what they counted into the old ones.
    totals.end();
    totals = newTotals();
  }
}

/**
 * Sends the requests of a walk that several readers may share: each is charged to the readers, and ends with the walk,
 * which ends if none of them can afford the pages.
 *
 * @param origin of the reader that started the walk
 */
function drainRequester(
  execute: Execute,
  pace: Pace,
  { signal, spend }: WalkReaders,
  origin: RequestOrigin,
): Requester {
  return {
    ...origin,
    request: async (request, ofPage = signal) => {
      spend(request.pages);
      ofPage.throwIfAborted();
      const paced = pace.begin();
      const onPressure = paced.pressed;
      const sender: Sender = { ...origin, signal: ofPage, priority: 'drain', onPressure };
      const answer = await execute(request, sender);
      paced.arrived();
      return answer;
    },
  };
}

/** Reports how a walk ended. */
async function* reportedWalk<R>(
  telemetry: WalkTelemetry,
  kind: WalkKind,
  begin: () => WalkedPages<R>,
): WalkedPages<R> {
  let outcome: WalkOutcome = 'stopped';
  try {
    for await (const page of begin()) {
      outcome = page.hasNextPage ? 'stopped' : 'whole';
      yield page;
    }
    outcome = 'whole';
  } catch (error) {
    const isAbort = error instanceof Error && error.name === 'AbortError';
    outcome = isAbort ? 'stopped' : { code: codeOf(error) };
    throw error;
  } finally {
    telemetry.walkEnded(kind, outcome);
  }
}
