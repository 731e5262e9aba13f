import type { Clock } from '../clock.ts';
import { GatewayFailure, NO_REASON, type Gateway, type Payload } from './gateway.ts';
import { ID_KEY, LIST_KEY, type ExportedList } from './list.ts';

/** The records of one page, in the order of the list. */
export interface Page {
  /** Null for a record that the service could not return. */
  readonly records: readonly (Readonly<Record<string, unknown>> | null)[];
  /** The cursor of the last record. */
  readonly after: string;
  /** The number of records in the list when the gateway last read it whole; undefined if it never did. */
  readonly listLength: number | undefined;
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
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onWait: OnWait;
}

/** Called before each wait after a failure. @param fewer records of an operation, if they are fewer from now on */
type OnWait = (failure: GatewayFailure, seconds: number, fewer?: number) => void;

/** Records of a window of a connection: the default of CONNECTION_MAX. */
const WINDOW = 500;
/** Records of an operation, if a page of the service costs too much with what is selected below its 50 records. */
const FEW = 25;

/**
 * Reads a list to its end. It is streamed: then the gateway reads ahead, and several pages at a time where it knows
 * them. What it does not stream, or refuses as too much, is read in windows of the connection.
 *
 * When an operation fails or reaches a limit of the gateway, another one continues after the last record.
 *
 * @throws GatewayFailure when there was no progress for 5 minutes, or someone has to do something first
 */
export async function* readPages(options: ReadOptions): AsyncGenerator<Page, void, undefined> {
  const { list, clock, signal, onWait } = options;
  let { after } = options;
  /** The records of one operation; undefined: all. */
  let size: number | undefined;
  const patience = new Patience(clock, signal);
  while (options.needed() > 0) {
    let count = 0;
    try {
      const now = Math.min(options.needed(), size ?? Infinity);
      const isStreamed = size === undefined || list.window === undefined;
      const query = isStreamed ? list.stream(now) : list.window(now);
      const pages = isStreamed ? streamed(options, query, after) : window(options, query, after);
      let hasMore = false;
      for await (const page of pages) {
        count += page.records.length;
        after = page.after;
        hasMore = page.hasMore ?? count === now;
        yield page;
        patience.restart();
      }
      if (!hasMore) return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GatewayFailure)) throw error;
      const { code, isTemporary, minutesOfPages = 0 } = error.reasons;
      const hasNone = count === 0;
      after = error.reasons.resumeAfter ?? after;
      // The next operation continues.
      if (!hasNone && code === 'DRAIN_LIMIT_EXCEEDED') continue;
      if (hasNone && code === 'CURSOR_INVALID' && after !== undefined) {
        // The record of the cursor is gone, so the list is read from the start. What was written is left out again.
        after = undefined;
        continue;
      }
      const fewer = hasNone ? fewerThan(size, error, list) : undefined;
      // The operation would use all these pages again.
      if (hasNone && fewer === undefined && minutesOfPages > 1) throw tooCostly(error);
      if (fewer === undefined && !isTemporary) throw error;
      if (fewer !== undefined) {
        size = fewer;
        patience.restart();
        if (!isTemporary) continue;
      }
      // Until the caller has all pages that the operation needed, and as many again for the rest of it.
      const atLeast = hasNone ? Math.ceil(60 * Math.min(1, 2 * minutesOfPages)) : 0;
      await patience.wait(error, atLeast, (seconds) => onWait(error, seconds, fewer));
    }
  }
}

/** Returns how many records to read with one operation that was refused before its first record; undefined: no fewer. */
function fewerThan(
  size: number | undefined,
  failure: GatewayFailure,
  list: ExportedList,
): number | undefined {
  const { code, isTemporary, minutesOfPages = 0 } = failure.reasons;
  const half = Math.floor((size ?? Infinity) / 2);
  const isMinuteSpent = isTemporary && minutesOfPages > 1;
  // CONNECTION_MAX of this gateway may be less than the window.
  const isTooMuch =
    code === 'OPERATION_TOO_COMPLEX' || (code === 'BAD_USER_INPUT' && size !== undefined);
  const canWindow = failure instanceof NotStreamed && list.window !== undefined;
  if (!isMinuteSpent && !isTooMuch && !canWindow) return undefined;
  return Math.min(half, isMinuteSpent ? FEW : WINDOW) || undefined;
}

function tooCostly({ message, reasons }: GatewayFailure): GatewayFailure {
  return new GatewayFailure(
    `${message} This is the cost of a single record with what is selected below it. Select less, take only the first ` +
      'elements of its lists with (first: n), or export without --url, where this limit does not apply.',
    { ...reasons, isTemporary: false },
  );
}

/** The list has fields that a company adds. The gateway sends these in one piece. */
class NotStreamed extends GatewayFailure {
  constructor() {
    super(
      'The gateway does not answer these fields in parts, and this list has no connection to read instead. ' +
        'Leave out the fields that the gateway adds to those of the service.',
      { isTemporary: false },
    );
  }
}

interface PageOfOperation extends Page {
  /** Undefined for a stream: it ends with the list or with the number of records that were requested. */
  readonly hasMore?: boolean;
}

async function* streamed(
  { gateway, signal }: ReadOptions,
  query: string,
  after: string | undefined,
): AsyncGenerator<PageOfOperation> {
  for await (const payload of gateway.payloads(query, after, signal)) {
    // By default, @stream sends no records with the first payload.
    const isWhole = payload.hasNext === undefined;
    if (isWhole && Array.isArray(payload.data?.[LIST_KEY])) throw new NotStreamed();
    if (!payload.incremental) failOn(payload.errors);
    for (const { items, errors, extensions = {} } of payload.incremental ?? []) {
      if (!items) failOn(errors);
      if (!items?.length) continue;
      const { resumeAfter, listLength } = extensions;
      if (resumeAfter === undefined) throw new GatewayFailure(TOO_OLD, { isTemporary: false });
      yield { records: recordsOf(items), after: resumeAfter, listLength, faults: faultsOf(errors) };
    }
  }
}

const TOO_OLD =
  'The gateway does not say where to resume, so it is older than this command. Export with the version that it runs.';

interface Window {
  readonly edges: readonly { readonly cursor: string; readonly node: unknown }[];
  readonly pageInfo: { readonly hasNextPage: boolean };
}

async function* window(
  { gateway, signal }: ReadOptions,
  query: string,
  after: string | undefined,
): AsyncGenerator<PageOfOperation> {
  for await (const { data, errors } of gateway.payloads(query, after, signal)) {
    const connection = data?.[LIST_KEY] as Window | null | undefined;
    if (!connection) failOn(errors);
    const last = connection?.edges.at(-1);
    if (!connection || !last) return;
    const records = recordsOf(connection.edges.map(({ node }) => node));
    const { hasNextPage: hasMore } = connection.pageInfo;
    const faults = faultsOf(errors);
    yield { records, after: last.cursor, listLength: undefined, faults, hasMore };
  }
}

/** @throws GatewayFailure for the error of an answer without records */
function failOn([error]: Payload['errors'] = []): void {
  if (error) throw GatewayFailure.of(error);
}

function recordsOf(values: readonly unknown[]): Page['records'] {
  return values as Page['records'];
}

/** @throws GatewayFailure if a list below a record is null only because the caller has used the pages of the minute */
function faultsOf(errors: Payload['errors'] = []): string[] {
  const unpaid = errors.find(({ extensions }) => extensions?.['pagesPerMinute'] !== undefined);
  if (unpaid) throw GatewayFailure.of(unpaid);
  return errors.map(({ message = NO_REASON }) => message);
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
class Patience {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  /** Seconds. */
  #next = 1;
  #end = 0;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    this.restart();
  }

  /** Call it when there was progress. */
  restart(): void {
    this.#next = 1;
    this.#end = this.#clock.elapsed() + PATIENCE_MS;
  }

  /** Waits for as long as the failure says, or else for the next longer time. @throws the failure if it is final */
  async wait(
    failure: GatewayFailure,
    atLeast: number,
    onWait: (seconds: number) => void,
  ): Promise<void> {
    const seconds = Math.max(failure.reasons.retryAfter ?? this.#next, atLeast);
    if (this.#clock.elapsed() + seconds * 1000 > this.#end) throw failure;
    onWait(seconds);
    await this.#clock.sleep(seconds * 1000, this.#signal);
    this.#next = Math.min(2 * this.#next, LONGEST_WAIT_S);
  }
}

/** The same gateway, whose `ask` waits while the gateway cannot be reached. */
export function patientGateway(gateway: Gateway, clock: Clock, onWait: OnWait): Gateway {
  return {
    ...gateway,
    ask: async (query, signal) => {
      const patience = new Patience(clock, signal);
      for (;;) {
        try {
          return await gateway.ask(query, signal);
        } catch (error) {
          if (!(error instanceof GatewayFailure) || !error.reasons.isTemporary) throw error;
          await patience.wait(error, 0, (seconds) => onWait(error, seconds));
        }
      }
    },
  };
}
