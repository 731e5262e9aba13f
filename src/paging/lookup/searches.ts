import type { Clock } from '../../clock.ts';
import { codedError } from '../../errors.ts';
import { type PageIndex, isSamePlace, placesIn, type Place } from '../page-index/page-index.ts';
import type { Seeking, Sought } from './look-up.ts';
import { Search, type SearchWalk } from './search.ts';

/** A list that is walked when somebody looks for records of which nobody knows where they are. */
export interface SearchedList {
  readonly key: string;
  /** For people. */
  readonly name: string;
  /** What the last walk left behind. */
  readonly index: () => PageIndex | undefined;
  readonly walk: SearchWalk;
}

/** The walks of all who look for records by their ids: of each list one at a time, and not too often. */
export interface Searches {
  /**
   * Joins the walk that is under way, or begins one. Who leaves hurts nobody else.
   *
   * @param tried where they were looked for already
   */
  find(
    list: SearchedList,
    identities: readonly string[],
    tried: ReadonlyMap<string, Place>,
    seeking: Seeking,
  ): Promise<Sought>;
  /** What is there may be another from now on. */
  separate(): void;
}

/**
 * So long after a walk, nobody walks the list again for the sake of ids, however many unknown ones are asked
 * for: what the walk did not meet counts as not there.
 */
export const SEARCH_AGAIN_AFTER_MS = 30_000;

export interface SearchLimits {
  readonly clock: Clock;
  /** Records that one walk goes over at most. */
  readonly maxItems: number;
  /** Records whose places are remembered of a walk under way. */
  readonly maxRecords: number;
}

export function createSearches(limits: SearchLimits): Searches {
  const { maxItems } = limits;
  let searches = new Map<string, Search>();
  return {
    find: async (list, identities, tried, seeking) => {
      seeking.signal.throwIfAborted();
      let search = searches.get(list.key);
      if (!search || isOver(search) || isOutdated(search, list, tried)) {
        // Others may wait for what it still has to meet.
        search?.retire();
        search = new Search({
          ...limits,
          walk: list.walk,
          isIndexed: () => isIndexed(list),
          tooLong: () => longerThan(maxItems, list.name),
          notRemembered: () => notRemembered(list.name, SEARCH_AGAIN_AFTER_MS),
        });
        searches.set(list.key, search);
      }
      return search.end === undefined
        ? search.find(identities, seeking)
        : known(list, identities, search);
    },
    separate: () => {
      for (const search of searches.values()) search.retire();
      searches = new Map();
    },
  };

  /** What is to be said as long as the list is not walked again. */
  function known(list: SearchedList, identities: readonly string[], search: Search): Sought {
    const places = metBy(search, list, identities);
    const verdict = () => {
      if (search.end === 'failed') return { error: search.failure };
      if (search.end === 'too long') return { error: longerThan(maxItems, list.name) };
      if (isIndexed(list) || search.remembersAll) return null;
      return { error: notRemembered(list.name, SEARCH_AGAIN_AFTER_MS - search.age) };
    };
    return new Map(identities.map((identity) => [identity, places.get(identity) ?? verdict()]));
  }
}

/** Where a walk met those records, as far as it remembers that itself, or in the index that it left behind. */
function metBy(search: Search, { index }: SearchedList, identities: readonly string[]) {
  const hasLeft = search.end === 'whole' || search.end === 'too long';
  const left = hasLeft ? (index()?.pages ?? []) : [];
  return new Map<string, Place>([...placesIn(left, identities), ...search.passed(identities)]);
}

function isOver(search: Search): boolean {
  const again = search.end === 'failed' ? search.failsFor : SEARCH_AGAIN_AFTER_MS;
  return search.age >= Math.min(again, SEARCH_AGAIN_AFTER_MS);
}

/**
 * A record that is gone from where the walk met it was moved or removed since, so that what the walk tells is
 * wrong. Who asks for unknown ids alone cannot bring that about.
 */
function isOutdated(
  search: Search,
  list: SearchedList,
  tried: ReadonlyMap<string, Place>,
): boolean {
  if (search.end === 'too long' || tried.size === 0) return false;
  const met = metBy(search, list, [...tried.keys()]);
  return [...tried].some(([identity, place]) => isSamePlace(met.get(identity), place));
}

/** Whether its index knows the place of every record. */
function isIndexed({ index }: SearchedList): boolean {
  const { pages = [], complete = false } = index() ?? {};
  return complete && pages.every(({ records }) => records);
}

function longerThan(max: number, name: string) {
  return codedError(
    'DRAIN_LIMIT_EXCEEDED',
    `The record is not among the first ${max} of ${name}, and no more are looked through for an id. ` +
      'Page through the list instead, or have the operator raise DRAIN_MAX_ITEMS.',
    { extensions: { max } },
  );
}

function notRemembered(name: string, waitMs: number) {
  const retryAfter = Math.ceil(waitMs / 1000);
  return codedError(
    'RATE_LIMITED',
    `To find a record by its id, all of ${name} has to be walked, since not all places in it can be remembered, ` +
      `and that is done once in ${SEARCH_AGAIN_AFTER_MS / 1000} seconds. Try again in ${retryAfter} seconds; ` +
      'the operator can raise INDEX_MAX_IDS.',
    { extensions: { retryAfter } },
  );
}
