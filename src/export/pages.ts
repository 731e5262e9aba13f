import type { Clock } from '../clock.ts';
import { GatewayFailure, NO_REASON, type Gateway, type Payload } from './gateway.ts';
import { ID_KEY, LIST_KEY, type ExportedList } from './list.ts';

/** Records of a list, in its order. */
export interface Page {
  /** Null for a record that the service could not return. */
  readonly records: readonly (Readonly<Record<string, unknown>> | null)[];
  /** The cursor of the last record. */
  readonly after: string;
  /** The number of records in the list when the gateway last read it whole; undefined if it never did. */
  readonly listLength?: number | undefined;
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

/** Records of a window of a connection, the default of CONNECTION_MAX, and of what is written of a stream at once. */
const WINDOW = 500;

/**
 * Reads a list to its end. It is streamed: then the gateway reads ahead, and several pages at a time where it knows
 * them. What it does not stream, or refuses as too much, is read in windows of the connection, each half as large as
 * the last one until they are answered.
 *
 * When an operation fails or reaches a limit of the gateway, another one continues after the last record.
 *
 * @throws GatewayFailure when there was no progress for 5 minutes, or someone has to do something first
 */
export async function* readPages(options: ReadOptions): AsyncGenerator<Page, void, undefined> {
  const { list, needed, patience, signal } = options;
  let { after } = options;
  /** The records of one operation; undefined: all, in a stream. */
  let size: number | undefined;
  while (needed() > 0) {
    let count = 0;
    try {
      const first = Math.min(needed(), size ?? Infinity);
      let hasMore = false;
      for await (const page of answerOf(options, first, after, size === undefined)) {
        count += page.records.length;
        after = page.after;
        hasMore = page.hasMore ?? count === first;
        yield page;
        patience.restart();
      }
      if (!hasMore) return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GatewayFailure)) throw error;
      const { code, isTemporary, resumeAfter, minutesOfPages = 0 } = error.reasons;
      const isFirst = count === 0;
      // The next operation continues.
      after = resumeAfter ?? after;
      if (!isFirst && code === 'DRAIN_LIMIT_EXCEEDED') continue;
      if (isFirst && code === 'CURSOR_INVALID' && after !== undefined) {
        // The record of the cursor is gone, so the list is read from the start. What was written is left out again.
        after = undefined;
        continue;
      }
      const isTooMuch =
        error instanceof NotStreamed ||
        code === 'OPERATION_TOO_COMPLEX' ||
        // CONNECTION_MAX of this gateway may be less than the window.
        (code === 'BAD_USER_INPUT' && size !== undefined) ||
        // The operation would use all these pages again.
        minutesOfPages > 1;
      if (isFirst && isTooMuch) {
        const fewer = Math.floor((size ?? 2 * WINDOW) / 2);
        if (!list.window || fewer === 0) throw minutesOfPages > 1 ? tooCostly(error) : error;
        size = fewer;
        patience.restart();
        if (!isTemporary) continue;
      } else if (!isTemporary) throw error;
      // Until the caller has all pages that the operation needed, and as many again for the rest of it.
      await patience.wait(error, isFirst ? Math.ceil(60 * Math.min(1, 2 * minutesOfPages)) : 0);
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

interface Window {
  readonly edges: readonly { readonly cursor: string; readonly node: unknown }[];
  readonly pageInfo: { readonly hasNextPage: boolean };
}

/** Returns the pages of one operation. */
async function* answerOf(
  { gateway, list, signal }: ReadOptions,
  first: number,
  after: string | undefined,
  isStreamed: boolean,
): AsyncGenerator<PageOfOperation> {
  if (isStreamed)
    return yield* together(streamed(gateway.send(list.stream(first), { after }, signal)));
  for await (const { data, errors } of gateway.send(list.window!(first), { after }, signal)) {
    const window = data?.[LIST_KEY] as Window | null | undefined;
    if (!window) throw GatewayFailure.of(errors?.[0] ?? {});
    const last = window.edges.at(-1);
    if (!last) return;
    const nodes = window.edges.map(({ node }) => node);
    const page = pageOf(nodes, { resumeAfter: last.cursor }, errors);
    yield { ...page, hasMore: window.pageInfo.hasNextPage };
  }
}

async function* streamed(payloads: AsyncIterable<Payload>): AsyncGenerator<Page> {
  for await (const { data, errors, incremental, hasNext } of payloads) {
    // By default, @stream sends no records with the first payload.
    if (hasNext === undefined && Array.isArray(data?.[LIST_KEY])) throw new NotStreamed();
    if (!incremental) failOn(errors);
    for (const part of incremental ?? []) {
      if (!part.items) failOn(part.errors);
      if (part.items?.length) yield pageOf(part.items, part.extensions, part.errors);
    }
  }
}

/** Joins pages, because what is written at once is flushed to the disk. What was read before a failure is kept. */
async function* together(pages: AsyncIterable<Page>): AsyncGenerator<Page> {
  let held: Page | undefined;
  try {
    for await (const page of pages) {
      held = held
        ? {
            ...page,
            records: [...held.records, ...page.records],
            faults: [...held.faults, ...page.faults],
          }
        : page;
      if (held.records.length < WINDOW) continue;
      yield held;
      held = undefined;
    }
  } catch (error) {
    if (held) yield held;
    throw error;
  }
  if (held) yield held;
}

function pageOf(
  records: readonly unknown[],
  { resumeAfter, listLength }: { resumeAfter?: string; listLength?: number } = {},
  errors: Payload['errors'] = [],
): Page {
  if (resumeAfter === undefined) throw new GatewayFailure(TOO_OLD, { isTemporary: false });
  // A list below a record is null only because the caller has used the pages of the minute.
  failOn(errors.filter(({ extensions }) => extensions?.['pagesPerMinute'] !== undefined));
  const faults = errors.map(({ message = NO_REASON }) => message);
  return { records: records as Page['records'], after: resumeAfter, listLength, faults };
}

const TOO_OLD =
  'The gateway does not say where to resume, so it is older than this command. Export with the version that it runs.';

/** @throws GatewayFailure for the first error */
function failOn([error]: Payload['errors'] = []): void {
  if (error) throw GatewayFailure.of(error);
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
