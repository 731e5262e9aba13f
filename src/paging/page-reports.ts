import type { Clock } from '../clock.ts';
import type { PageLedger } from '../page-ledger.ts';

/*
 * How processes share the minute of a caller
 *
 *      process: 5,000 left                                 ledger: 4,800 left, because others reported 200 pages
 *      spends 300:  4,700 left  ──  take 300  ───────────>  4,500 left
 *      spends 20:   4,680 left                                 │
 *      learns:      4,480 left  <──  4,500, less those 20  ────┘
 *
 * Each process has a bucket of its own for a caller, and decides by it alone: no request waits for the ledger. What was
 * spent is reported soon after. The answer says how many pages are left when those of all other processes are counted,
 * and lowers the bucket to that. All buckets refill at the same rate, so one shows less than the caller has only by what
 * refills while a report travels: nobody is refused pages that are there. It may show more, until the next report. What a
 * caller spends then is counted all the same: the ledger goes below zero, and the caller waits until it has refilled.
 *
 * One report is under way at a time, for all callers together. There is a second between two of them, unless a caller
 * has spent a twentieth of its minute since the last one. So a caller can exceed its minute by about a twentieth in each
 * process, and by what it spends there while a report is under way.
 *
 * While the ledger fails, the buckets go on without it. Pages whose report failed are not reported again, because they
 * may have been counted.
 */

export interface PageReports {
  /**
   * Reports these pages soon.
   *
   * @param ago they were spent so many ms ago
   */
  add(caller: string, pages: number, ago?: number): void;
  /** Reports what is left to be reported, unless that takes too long. */
  close(): Promise<void>;
}

interface PageReportsParts {
  readonly ledger: PageLedger;
  readonly perMinute: number;
  readonly clock: Clock;
  readonly learn: (caller: string, known: KnownPages) => void;
}

/** What the ledger knew of a caller. */
export interface KnownPages {
  readonly left: number;
  /** The report was sent then, by `clock.elapsed()`; the answer may be from later. */
  readonly at: number;
  /** Pages that were spent here after that. */
  readonly spentSince: number;
}

const PAUSE_MS = 1_000;
const PAUSE_AFTER_FAILURE_MS = 5_000;
const LAST_REPORT_MS = 1_000;

export function createPageReports({
  ledger,
  perMinute,
  clock,
  learn,
}: PageReportsParts): PageReports {
  const enough = Math.ceil(perMinute / 20);
  let unreported = new Map<string, number>();
  /** When the first of them were spent. */
  let since = Infinity;
  let reporting: Promise<void> | undefined;
  let nextAt = 0;
  let isHurried = false;
  /** Of the pause before the next report. */
  let pausing: AbortController | undefined;
  let hasFailed = false;
  let isClosing = false;

  return {
    add: (caller, pages, ago = 0) => {
      since = Math.min(since, clock.elapsed() - ago);
      const sum = (unreported.get(caller) ?? 0) + pages;
      unreported.set(caller, sum);
      reporting ??= reportAll();
      if (sum >= enough && !hasFailed) hurry();
    },
    close: async () => {
      isClosing = true;
      pausing?.abort();
      if (reporting) await Promise.race([reporting, clock.sleep(LAST_REPORT_MS)]);
    },
  };

  function hurry(): void {
    isHurried = true;
    pausing?.abort();
  }

  async function reportAll(): Promise<void> {
    while (unreported.size > 0) {
      await pause();
      await report();
    }
    reporting = undefined;
  }

  async function pause(): Promise<void> {
    const ms = nextAt - clock.elapsed();
    if (ms <= 0 || isHurried || isClosing) return;
    pausing = new AbortController();
    await clock.sleep(ms, pausing.signal).catch(() => {});
  }

  async function report(): Promise<void> {
    const at = clock.elapsed();
    const spent = Array.from(unreported, ([caller, pages]) => ({ caller, pages }));
    const ago = at - since;
    unreported = new Map();
    since = Infinity;
    isHurried = false;
    try {
      const left = await ledger.take({ spent, ago });
      spent.forEach(({ caller }, index) =>
        learn(caller, { left: left[index]!, at, spentSince: unreported.get(caller) ?? 0 }),
      );
      hasFailed = false;
    } catch {
      // Whoever has the ledger logs why.
      hasFailed = true;
      isHurried = false;
    }
    nextAt = clock.elapsed() + (hasFailed ? PAUSE_AFTER_FAILURE_MS : PAUSE_MS);
  }
}
