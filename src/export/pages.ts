import type { Clock } from '../clock.ts';
import { GatewayFailure, NO_REASON, type Gateway } from './gateway.ts';
import { ID_KEY, LIST_KEY, TYPE_KEY, type ExportedList } from './list.ts';

/** Records of a list, in its order. */
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

/** Records of a window of a connection, the default of CONNECTION_MAX. */
const WINDOW = 500;

/**
 * Reads a list to its end in windows of its connection: where the gateway knows the list, it reads several pages of a
 * window at a time. What it refuses as too much is read in windows that are half as large, until they are answered.
 *
 * @throws GatewayFailure when there was no progress for 5 minutes, or someone has to do something first
 */
export async function* readPages(options: ReadOptions): AsyncGenerator<Page, void, undefined> {
  const { needed, patience, signal } = options;
  let { after } = options;
  let size = WINDOW;
  while (needed() > 0) {
    let window: WindowPage;
    try {
      window = await readWindow(options, Math.min(needed(), size), after);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GatewayFailure)) throw error;
      const { code, isTemporary, isTooMuch } = error.reasons;
      if (code === 'CURSOR_INVALID' && after !== undefined) {
        // The record of the cursor is gone, so the list is read from the start. What was written is left out again.
        after = undefined;
        continue;
      }
      if (isTooMuch && size > 1) {
        size = Math.floor(size / 2);
        patience.restart();
        if (!isTemporary) continue;
      } else if (!isTemporary) throw error;
      await patience.wait(error);
      continue;
    }
    if (window.records.length === 0) return;
    yield window;
    patience.restart();
    if (!window.hasMore) return;
    ({ after } = window);
  }
}

interface WindowPage extends Page {
  readonly hasMore: boolean;
}

interface Window {
  readonly edges: readonly { readonly cursor: string; readonly node: unknown }[];
  readonly pageInfo: { readonly hasNextPage: boolean };
}

async function readWindow(
  { gateway, list, signal }: ReadOptions,
  first: number,
  after: string | undefined,
): Promise<WindowPage> {
  const { data, errors = [] } = await gateway.send(list.window(first), { after }, signal);
  const window = data?.[LIST_KEY] as Window | null | undefined;
  if (!window) throw GatewayFailure.of(errors[0] ?? {});
  // A list below a record is null only because the caller has used the pages of the minute.
  const spent = errors.find(({ extensions }) => extensions?.['pagesPerMinute'] !== undefined);
  if (spent) throw GatewayFailure.of(spent);
  return {
    records: window.edges.map(({ node }) => node) as Page['records'],
    after: window.edges.at(-1)?.cursor ?? '',
    faults: errors.map(({ message = NO_REASON }) => message),
    hasMore: window.pageInfo.hasNextPage,
  };
}

/** Returns what identifies a record, as records of two types may have the same id; null if it has none. */
export function idOf(record: Page['records'][number]): string | null {
  const id = record?.[ID_KEY] ?? null;
  return id === null ? null : `${String(record?.[TYPE_KEY])} ${JSON.stringify(id)}`;
}

/** A failure is final after this time without an answer or a new record. */
const PATIENCE_MS = 5 * 60_000;
/** Unless the gateway says how long. */
const WAIT_S = 10;

/** Waits after failures, until there was no progress for 5 minutes. */
export class Patience {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  /** Called before each wait. */
  readonly #onWait: (failure: GatewayFailure, seconds: number) => void;
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
    this.#end = this.#clock.elapsed() + PATIENCE_MS;
  }

  /** @throws the failure if it is final */
  async wait(failure: GatewayFailure): Promise<void> {
    const { retryAfter: seconds = WAIT_S } = failure.reasons;
    if (this.#clock.elapsed() + seconds * 1000 > this.#end) throw failure;
    this.#onWait(failure, seconds);
    await this.#clock.sleep(seconds * 1000, this.#signal);
  }
}
