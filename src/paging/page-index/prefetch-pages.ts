import { Slots } from '../../queue.ts';
import { OutageDetector } from '../failures.ts';
import {
  overlappingSize,
  type FetchPage,
  type Identified,
  type Page,
  type PageRequest,
} from '../page.ts';
import { joinPages } from './join-pages.ts';
import type { PageIndex } from './page-index.ts';

/** A page as it was read in this walk. */
export interface PageRead<R> {
  readonly after: string | null;
  readonly page: Page<R>;
}

/** The pages of an index, read ahead. Each is requested once. */
export interface Prefetch<R> {
  /** Undefined when it could not be read: the service may refuse its cursor by now. */
  page(number: number): Promise<PageRead<R> | undefined>;
  /** The page if it was read; `pending` until it was, or could not be read. */
  settled(number: number): PageRead<R> | 'pending' | undefined;
  /**
   * Requests this page and those behind it, as far as a walk may be ahead.
   *
   * @param wanted records
   * @returns the page in front of which the walk will probably not end
   */
  lookAhead(page: number, wanted: number): number;
  /** The first page of the index, from `next` on, that continues `page`; undefined when there is none. */
  joining(page: Page<R>, next: number): Promise<number | undefined>;
  /** A page that is not in the index. Undefined when it could not be read. */
  readFrom(after: string | null): Promise<PageRead<R> | undefined>;
  /** For the parts that are walked page by page. */
  readonly fetchPage: FetchPage<R>;
  /** @throws the failure of the page */
  mustRead(number: number): Promise<PageRead<R>>;
  mustReadFrom(after: string | null): Promise<PageRead<R>>;
}

export interface PrefetchOptions {
  index: PageIndex;
  limit: number | undefined;
  pace: Pace;
  signal: AbortSignal;
  /** Called when a page was read, or could not be read. */
  onSettled: (number: number) => void;
}

/** Pages requested ahead of the consumer, for each that may be in flight. */
const AHEAD = 2;
/** Bytes of all pages that are read ahead, once some have shown how large they are. At least one page is. */
const MAX_BYTES_AHEAD = 16 * 1024 * 1024;

export function prefetchPages<R extends Identified>(
  fetchPage: FetchPage<R>,
  { index: { pages }, limit, pace, signal, onSettled }: PrefetchOptions,
): Prefetch<R> {
  const slots = new Slots(() => pace.limit);
  const requested = new Map<number, Promise<PageRead<R> | undefined>>();
  const settled = new Map<number, PageRead<R> | undefined>();
  const detector = new OutageDetector();
  let forgotten = 0;
  let lookedAt = 0;
  let largest = 1;

  return {
    page,
    settled: (number) => (settled.has(number) ? settled.get(number) : 'pending'),
    lookAhead: (from, wanted) => {
      for (; forgotten < from; forgotten += 1) forget(forgotten);
      const ahead = Math.min(AHEAD * pace.limit, Math.ceil(MAX_BYTES_AHEAD / largest));
      const most = Math.min(pages.length, from + ahead);
      let end = from;
      let before = 0;
      let expected = 0;
      for (; end < most && expected < wanted; end += 1) {
        if (end >= lookedAt) void page(end);
        const { count } = pages[end]!;
        // It is read in full, so that it overlaps with the next one.
        expected = before + Math.max(count, limit ?? 0);
        before += count;
      }
      lookedAt = Math.max(lookedAt, end);
      return expected < wanted ? end : end - 1;
    },
    joining: async (last, next) => {
      for (let number = next; number < pages.length; number += 1) {
        const read = await page(number);
        if (!read) continue;
        const join = joinPages(last, read.page, pages[number]!.behind);
        if (join.kind === 'joined') return number;
        if (join.kind === 'apart') return laterJoining(last, number);
      }
      return undefined;
    },
    readFrom: (after) =>
      send({ after, first: undefined }, { isUrgent: true, isAhead: true }).catch(() => undefined),
    mustRead: async (number) => (await page(number)) ?? mustReadFrom(pages[number]!.after),
    mustReadFrom,
    fetchPage: async (request) => (await send(request, { isUrgent: true })).page,
  };

  function page(number: number): Promise<PageRead<R> | undefined> {
    const known = requested.get(number);
    if (known) return known;
    const { after, count } = pages[number]!;
    // The next page begins further on than this one can reach. A smaller page leaves an overlap with what follows.
    const first = limit !== undefined && count >= limit ? overlappingSize(limit) : undefined;
    const settle = (read?: PageRead<R>) => {
      largest = Math.max(largest, read?.page.memory ?? 0);
      if (!requested.has(number)) return read;
      settled.set(number, read);
      onSettled(number);
      return read;
    };
    const read = send({ after, first }, { isAhead: true }).then(settle, () => settle());
    requested.set(number, read);
    return read;
  }

  function forget(number: number): void {
    requested.delete(number);
    settled.delete(number);
  }

  /** When records were moved, a page in between may join none. A later one that has arrived may continue the page. */
  function laterJoining(last: Page<R>, from: number): number | undefined {
    for (const [number, read] of settled) {
      if (!read || number <= from) continue;
      if (joinPages(last, read.page, pages[number]!.behind).kind === 'joined') return number;
    }
    return undefined;
  }

  function mustReadFrom(after: string | null): Promise<PageRead<R>> {
    return send({ after, first: undefined }, { isUrgent: true });
  }

  /**
   * @param isUrgent before the other pages ahead: the consumer waits for this one
   * @param isAhead the consumer may never need the page, so it is left out while the service is down
   */
  function send(request: PageRequest, { isUrgent = false, isAhead = false }): Promise<PageRead<R>> {
    const read = async () => {
      signal.throwIfAborted();
      if (isAhead && detector.outage) throw LEFT_OUT;
      return { after: request.after, page: await detector.count(fetchPage(request, signal)) };
    };
    return slots.run(read, { isUrgent });
  }
}

/** Made once: a new one, with its stack, costs more than the page it stands for. */
const LEFT_OUT = new Error('The service is probably down.');

/** How many pages of one walk may be in flight: fewer while the upstream is overloaded, then more again. */
export interface Pace {
  readonly limit: number;
  /** A page is requested. */
  begin(): PacedRequest;
}

export interface PacedRequest {
  /** The upstream answered 429 or 5xx. */
  pressed(): void;
  /** The page has arrived. */
  arrived(): void;
}

/**
 * Halves the limit on 429 or 5xx, and raises it by one for every `limit` pages that arrive without. The requests that
 * were in flight when it was halved do not halve it again.
 *
 * @param max pages in flight per drain, as configured
 */
export function createPace(max: number): Pace {
  let limit = max;
  let halvings = 0;
  let arrivals = 0;
  return {
    get limit() {
      return limit;
    },
    begin: () => {
      const begunAfter = halvings;
      let isPressed = false;
      return {
        pressed: () => {
          isPressed = true;
          if (begunAfter !== halvings) return;
          limit = Math.max(1, Math.floor(limit / 2));
          halvings += 1;
          arrivals = 0;
        },
        arrived: () => {
          if (isPressed || limit >= max) return;
          arrivals += 1;
          if (arrivals < limit) return;
          limit += 1;
          arrivals = 0;
        },
      };
    },
  };
}
