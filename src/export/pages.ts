import type { Clock } from '../clock.ts';
import { GatewayFailure, NO_REASON, type Answer, type Gateway } from './gateway.ts';
import { ID_KEY, LIST_KEY, type ExportedList } from './list.ts';

/** The records of one answer, in the order of the list. */
export interface Page {
  /** Null for a record that the service could not return. */
  readonly records: readonly (Readonly<Record<string, unknown>> | null)[];
  /** The cursor of the last record. */
  readonly after: string;
  /** For each value that the service could not return, and that is null, the reason. */
  readonly faults: readonly string[];
}

interface ReadOptions {
  readonly gateway: Gateway;
  readonly list: ExportedList;
  /** Undefined: from the start of the list. */
  readonly after: string | undefined;
  /** The number of records that are still needed; Infinity for all. Called before each operation. */
  readonly needed: () => number;
  readonly patience: Patience;
  readonly signal: AbortSignal;
}

/** Records of a window of a connection: the default of CONNECTION_MAX. */
const WINDOW = 500;

/**
 * Reads a list to its end, in windows of its connection: the gateway reads several pages of one at a time where it knows
 * them. A window that is refused as too much is read in smaller ones, each half as large as the last one. When an
 * operation fails, another one continues after the last record.
 *
 * @throws GatewayFailure when there was no progress for 5 minutes, or someone has to do something first
 */
export async function* readPages(options: ReadOptions): AsyncGenerator<Page, void, undefined> {
  const { gateway, list, needed, patience, signal } = options;
  let { after } = options;
  let size = list.hasWindows ? WINDOW : Infinity;
  // A list without a connection has no cursors: everything was written.
  if (!list.hasWindows && after !== undefined) return;
  while (needed() > 0) {
    try {
      const query = list.operation(Math.min(needed(), size));
      const { hasMore, ...page } = pageOf(await gateway.send(query, { after }, signal));
      patience.restart();
      after = page.after;
      if (page.records.length > 0) yield page;
      if (!hasMore) return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GatewayFailure)) throw error;
      const { code, isTemporary, minutesOfPages = 0 } = error.reasons;
      if (code === 'CURSOR_INVALID' && after !== undefined) {
        // The record of the cursor is gone, so the list is read from the start. What was written is left out again.
        after = undefined;
        continue;
      }
      // CONNECTION_MAX of this gateway may be less than the window, and a minute may have fewer pages.
      const isTooMuch =
        code === 'OPERATION_TOO_COMPLEX' || code === 'BAD_USER_INPUT' || minutesOfPages > 1;
      if (isTooMuch && 1 < size && size < Infinity) {
        size = Math.floor(size / 2);
        patience.restart();
        if (!isTemporary) continue;
      } else if (minutesOfPages > 1) throw tooCostly(error);
      else if (!isTemporary) throw error;
      // Until the caller has all pages that the operation needed, and as many again for the rest of it.
      await patience.wait(error, Math.ceil(60 * Math.min(1, 2 * minutesOfPages)));
    }
  }
}

function tooCostly({ message, reasons }: GatewayFailure): GatewayFailure {
  return new GatewayFailure(
    `${message} This is the cost of a single record with what is selected below it. Select less, take only the first ` +
      'elements of its lists with (first: n), or export without --url, where this limit does not apply.',
    { ...reasons, isTemporary: false },
  );
}

interface Window {
  readonly edges: readonly { readonly cursor: string; readonly node: unknown }[];
  readonly pageInfo: { readonly hasNextPage: boolean };
}

/** The cursor of a list without a connection: nothing comes behind it. */
const END = 'end';

/** @throws GatewayFailure if the list could not be read */
function pageOf({ data, errors = [] }: Answer): Page & { readonly hasMore: boolean } {
  const answered = data?.[LIST_KEY] as Window | readonly unknown[] | null | undefined;
  // A list below a record is null only because the caller has used the pages of the minute.
  const failure = answered
    ? errors.find(({ extensions }) => extensions?.['pagesPerMinute'] !== undefined)
    : (errors[0] ?? {});
  if (!answered || failure) throw GatewayFailure.of(failure ?? {});
  const faults = errors.map(({ message = NO_REASON }) => message);
  if (!('edges' in answered)) {
    return { records: answered as Page['records'], after: END, hasMore: false, faults };
  }
  const { edges, pageInfo } = answered;
  const records = edges.map(({ node }) => node) as Page['records'];
  const last = edges.at(-1);
  return { records, after: last?.cursor ?? END, hasMore: !!last && pageInfo.hasNextPage, faults };
}

/** Returns the id of a record; null if it has none. */
export function idOf(record: Page['records'][number]): string | null {
  const id = record?.[ID_KEY] ?? null;
  return id === null || typeof id === 'string' ? id : JSON.stringify(id);
}

/** A failure is final after this time without an answer or a new record. */
const PATIENCE_MS = 5 * 60_000;
const LONGEST_WAIT_S = 30;

/** Waits after failures, longer after each one in a row, until there was no progress for 5 minutes. */
export class Patience {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  /** Called before each wait. */
  readonly #onWait: (failure: GatewayFailure, seconds: number) => void;
  /** Seconds. */
  #next = 1;
  #end = 0;

  constructor(
    clock: Clock,
    signal: AbortSignal,
    onWait: (failure: GatewayFailure, seconds: number) => void,
  ) {
    this.#clock = clock;
    this.#signal = signal;
    this.#onWait = onWait;
    this.restart();
  }

  /** Call it when there was progress. */
  restart(): void {
    this.#next = 1;
    this.#end = this.#clock.elapsed() + PATIENCE_MS;
  }

  /**
   * Waits for as long as the failure says, or else for the next longer time.
   *
   * @param atLeast seconds
   * @throws the failure if it is final
   */
  async wait(failure: GatewayFailure, atLeast = 0): Promise<void> {
    const seconds = Math.max(failure.reasons.retryAfter ?? this.#next, atLeast);
    if (this.#clock.elapsed() + seconds * 1000 > this.#end) throw failure;
    this.#onWait(failure, seconds);
    await this.#clock.sleep(seconds * 1000, this.#signal);
    this.#next = Math.min(2 * this.#next, LONGEST_WAIT_S);
  }
}
