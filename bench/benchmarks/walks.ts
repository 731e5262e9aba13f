import { setTimeout as delay } from 'node:timers/promises';
import { walkList, type PagedList } from '../../src/paging/list-walk.ts';
import { Pace } from '../../src/paging/pace.ts';
import type { FetchPage } from '../../src/paging/page.ts';
import { PageIndexes } from '../../src/paging/page-index.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import { timed } from '../ask.ts';
import { randomNumbers } from '../random-numbers.ts';
import type { Benchmark, Row } from '../report.ts';

/*
 * The walk alone, without GraphQL and HTTP: over a list in memory whose pages take a while. The loop beside it is what a
 * program without the gateway contains.
 */

const RECORDS = 100_000;
const LATENCY = 20;
/** Pages in flight. */
const AT_A_TIME = 8;
const LIMIT = 50;
/** 1 % of the records. */
const CHANGED = RECORDS / 100;

export const walks: Benchmark = {
  title: `${RECORDS} records, ${LATENCY} ms per page, ${AT_A_TIME} pages in flight`,
  measure: async () => {
    const service = new SlowList(RECORDS);
    const loop = await service.counting(() => service.readInALoop());
    const known = new PageIndexes(2 * RECORDS);
    const first = await service.counting(() => service.walk(known));
    const second = await service.counting(() => service.walk(known));
    const rows = [
      ...ratios('the first walk', { atMost: 1.1 }, loop, first),
      ...ratios('a second walk', { atLeast: 6 }, loop, second),
    ];
    for (const [name, change] of Object.entries(changes)) {
      const list = new SlowList(RECORDS);
      // The index of a list that did not change, without waiting for its pages.
      const indexes = new PageIndexes(2 * RECORDS);
      await list.walk(indexes, { latency: 0 });
      change(list);
      const after = await list.counting(() => list.walk(indexes));
      rows.push(...ratios(`after 1 % ${name}`, { atLeast: 5 }, loop, after));
    }
    return rows;
  },
};

interface Measured {
  /** Milliseconds. */
  readonly time: number;
  readonly requests: number;
}

function ratios(
  what: string,
  promise: { atLeast: number } | { atMost: number },
  loop: Measured,
  walk: Measured,
): Row[] {
  const isSlower = 'atMost' in promise;
  return [
    {
      what: `${what}: ${isSlower ? 'time of the loop' : 'faster than the loop'}`,
      figures: [isSlower ? walk.time / loop.time : loop.time / walk.time],
      unit: 'x',
      promise,
    },
    { what: `${what}: requests of the loop`, figures: [walk.requests / loop.requests], unit: 'x' },
  ];
}

const random = randomNumbers(1);

/** Random positions in a list, valid if changes are applied from the last to the first. */
const anywhere = (count: number) =>
  Array.from({ length: count }, () => Math.floor(random() * (RECORDS - count))).toSorted(
    (a, b) => b - a,
  );

const changes: Record<string, (list: SlowList) => void> = {
  inserts: (list) => list.insert(anywhere(CHANGED)),
  removals: (list) => list.remove(anywhere(CHANGED)),
  'inserts and removals': (list) => {
    list.insert(anywhere(CHANGED / 2));
    list.remove(anywhere(CHANGED / 2));
  },
  'inserts, all at the front': (list) => list.insert(Array<number>(CHANGED).fill(0)),
  'removals, all at the front': (list) => list.remove(Array<number>(CHANGED).fill(0)),
};

/** A list whose cursors are the sort keys of records, and whose pages take a while. */
class SlowList {
  /** The sort keys; each is the id of its record too. */
  readonly #keys: number[];
  #requests = 0;

  constructor(length: number) {
    this.#keys = Array.from({ length }, (_, index) => index);
  }

  insert(positions: readonly number[]): void {
    const keys = this.#keys;
    for (const at of positions) {
      const [before = keys[0]! - 2, behind = before + 2] = [keys[at - 1], keys[at]];
      keys.splice(at, 0, (before + behind) / 2);
    }
  }

  remove(positions: readonly number[]): void {
    for (const at of positions) this.#keys.splice(at, 1);
  }

  async counting(work: () => Promise<void>): Promise<Measured> {
    const before = this.#requests;
    const time = await timed(work);
    return { time, requests: this.#requests - before };
  }

  async readInALoop(): Promise<void> {
    const fetchPage = this.#fetchPage(LATENCY);
    const all: unknown[] = [];
    for (let after: string | null = null; ;) {
      const page = await fetchPage(after, LIMIT);
      all.push(...page.records);
      if (!page.hasNextPage) break;
      after = page.endCursor;
    }
    this.#mustBeAll(all);
  }

  async walk(indexes: PageIndexes, { latency = LATENCY } = {}): Promise<void> {
    const list: PagedList = {
      name: 'list',
      fetchPage: this.#fetchPage(latency),
      indexes,
      size: new PageSize({ elapsed: () => 0 }, LIMIT),
      pace: new Pace(AT_A_TIME),
    };
    const all: unknown[] = [];
    for await (const { page, offsets } of walkList(list, { after: null })) {
      for (const offset of offsets) all.push(page.records[offset]);
    }
    this.#mustBeAll(all);
  }

  #fetchPage(latency: number): FetchPage {
    return async (after, first) => {
      this.#requests += 1;
      if (latency > 0) await delay(latency);
      const start = after === null ? 0 : this.#positionBehind(Number(after));
      const records = this.#keys.slice(start, start + first);
      return {
        records,
        ids: records.map((key) => `Person:${key}`),
        hasNextPage: start + first < this.#keys.length,
        endCursor: records.length > 0 ? String(records.at(-1)) : after,
        size: first,
      };
    };
  }

  #positionBehind(key: number): number {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#keys[middle]! > key) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #mustBeAll(read: readonly unknown[]): void {
    if (read.join() !== this.#keys.join()) throw new Error('A walk did not return the list.');
  }
}
