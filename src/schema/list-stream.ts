import type { DrainedPage } from '../paging/drain.ts';
import type { UpstreamRecord } from './read-page.ts';

type Page = DrainedPage<UpstreamRecord>;
type Pages = AsyncGenerator<Page, void, undefined>;

/** An `all…` field whose records are given part by part: its resolver is called once for each part. */
export interface ListStream {
  /**
   * For the resolver: the records that it is to give now.
   *
   * @param begin makes the pages, when this is the first part
   */
  part(begin: () => Pages): Promise<Page>;
  /**
   * Goes on to the next part; false when there is none.
   *
   * @throws what ended the walk
   */
  turn(): Promise<boolean>;
  /** Ends the walk. */
  end(): Promise<void>;
}

/** @param initialCount how many records are the first part, when the list has so many */
export function createListStream(initialCount: number): ListStream {
  let pages: Pages | undefined;
  let now: Page = NOTHING;
  /** Of the page whose first records were the last ones of the first part. */
  let rest: Page = NOTHING;
  let failure: { error: unknown } | undefined;

  return {
    part: async (begin) => {
      if (!pages) {
        pages = begin();
        now = await firstPart(pages);
      }
      return now;
    },
    turn: async () => {
      now = rest;
      rest = NOTHING;
      if (now.records.length > 0) return true;
      if (failure) throw failure.error;
      const { done = true, value } = (await pages?.next()) ?? {};
      if (done || !value) return false;
      now = value;
      return true;
    },
    end: async () => {
      await pages?.return();
    },
  };

  async function firstPart(walk: Pages): Promise<Page> {
    const records: Page['records'][number][] = [];
    const beside: unknown[] = [];
    try {
      while (records.length < initialCount) {
        const { done, value } = await walk.next();
        if (done) break;
        records.push(...value.records);
        beside.push(...value.beside);
      }
    } catch (error) {
      if (records.length === 0) throw error;
      // What was read is given first.
      failure = { error };
    }
    rest = { ...NOTHING, records: records.splice(initialCount) };
    return { ...NOTHING, records, beside };
  }
}

const NOTHING: Page = { records: [], hasNextPage: true, beside: [] };
