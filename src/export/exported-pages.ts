import type { Clock } from '../clock.ts';
import type { Json } from './json.ts';
import { ID_KEY, LIST_KEY, type ExportOperation } from './export-operation.ts';
import { GatewayFailure, type Gateway } from './gateway.ts';
import { Patience } from './patience.ts';

/** The records of one page, in the order of the list. */
export interface ExportedPage {
  readonly records: readonly ExportedRecord[];
  /** The cursor of the last record. */
  readonly resumeAfter: string;
  /** The number of records in the list when the gateway last read it whole. */
  readonly listLength: number | undefined;
  /** For each value that the service could not return, and that is null, the reason. */
  readonly faults: readonly string[];
  /** Whether the page may not begin exactly behind the page before: another operation was sent in between. */
  readonly isResumed: boolean;
}

interface ExportedRecord {
  /** Null if the record has no id. */
  readonly id: string | null;
  /** An object; null for a record that the service could not return. */
  readonly value: Json;
}

interface ExportedPagesOptions {
  readonly gateway: Gateway;
  readonly operation: ExportOperation;
  /** Undefined: from the start of the list. */
  readonly after: string | undefined;
  /** The number of records that are still needed; Infinity for all. Called before each operation. */
  readonly needed: () => number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called before each wait after a failure. @param fewer records of an operation, if they are fewer from now on */
  readonly onWait: (failure: GatewayFailure, seconds: number, fewer: number | undefined) => void;
}

/** Records of an operation, if the whole list needs more pages than the gateway allows for an operation. */
const PART = 5_000;
/** Records of an operation, if the gateway does not stream the list. The default of CONNECTION_MAX. */
const WINDOW = 500;
/** Records of an operation, if a page of the service costs too much with what is selected below its 50 records. */
const FEW = 25;

/** What an operation reads. */
type Reading =
  /** The list, streamed; undefined: to its end. */
  | { readonly limit: number | undefined }
  /** The connection; undefined: a page of the service. */
  | { readonly first: number | undefined };

/**
 * Reads a list to its end. When an operation fails or reaches a limit of the gateway, another one continues after the
 * last record.
 *
 * @throws GatewayFailure when there was no progress for 5 minutes, or someone has to do something first
 */
export async function* exportedPages(
  options: ExportedPagesOptions,
): AsyncGenerator<ExportedPage, void, undefined> {
  const { clock, signal } = options;
  let { after } = options;
  let isResumed = after !== undefined;
  let reading: Reading = { limit: undefined };
  const patience = new Patience(clock);
  while (options.needed() > 0) {
    let count = 0;
    const now = upTo(options.needed(), reading);
    try {
      let hasMore = false;
      for await (const page of pagesOf(options, after, now)) {
        count += page.records.length;
        after = page.resumeAfter;
        hasMore = page.hasMore ?? (isStreamed(now) && count === now.limit);
        yield { ...page, isResumed };
        patience.restart();
      }
      if (!hasMore) return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GatewayFailure)) throw error;
      after = error.resumeAfter ?? after;
      const hasNone = count === 0;
      const instead: Reading | undefined = hasNone
        ? insteadOf(reading, now, error, options.operation)
        : undefined;
      // The operation would use all these pages again.
      if (hasNone && !instead && (error.minutesOfPages ?? 0) > 1) throw recordTooCostly(error);
      if (hasNone && error.code === 'CURSOR_INVALID' && after !== undefined) {
        // The record of the cursor is gone, so the list is read from the start. What the file has is left out again.
        after = undefined;
      } else if (instead && !error.isTemporary) {
        reading = instead;
      } else if (hasNone || error.code !== 'DRAIN_LIMIT_EXCEEDED') {
        if (!error.isTemporary) throw error;
        if (instead) {
          reading = instead;
          patience.restart();
        }
        const size = instead && sizeOf(instead);
        const onWait = (seconds: number) => options.onWait(error, seconds, size);
        await patience.waitAfter(error, signal, onWait, hasNone ? secondsOfPages(error) : 0);
      }
    }
    isResumed = true;
  }
}

/** The same, without more records than are needed. A window that is a page of the service stays one. */
function upTo(needed: number, reading: Reading): Reading {
  if (needed === Infinity) return reading;
  if (isStreamed(reading)) return { limit: Math.min(needed, reading.limit ?? Infinity) };
  return reading.first === undefined ? reading : { first: Math.min(needed, reading.first) };
}

/**
 * Returns what to read instead when an operation is refused before its first record; undefined: nothing.
 *
 * @param now what was refused: `reading`, or fewer records if fewer are needed
 */
function insteadOf(
  reading: Reading,
  now: Reading,
  error: GatewayFailure,
  operation: ExportOperation,
): Reading | undefined {
  const isTooMuch = error.code === 'OPERATION_TOO_COMPLEX';
  const isMinuteSpent = error.isTemporary && (error.minutesOfPages ?? 0) > 1;
  if (isMinuteSpent) return withFewer(now);
  if (!isStreamed(reading)) {
    // CONNECTION_MAX of this gateway may be less.
    const isSmaller = isTooMuch || error.code === 'BAD_USER_INPUT';
    if (isSmaller && reading.first === WINDOW) return { first: undefined };
    return isTooMuch ? withFewer(now) : undefined;
  }
  const isWhole = error instanceof NotStreamed;
  if (isTooMuch && reading.limit === undefined) return { limit: PART };
  const canWindow = (isTooMuch || isWhole) && operation.window(WINDOW) !== undefined;
  if (canWindow) return { first: WINDOW };
  return isTooMuch ? withFewer(now) : undefined;
}

/** Halves the records of one operation; undefined if it is one. */
function withFewer(now: Reading): Reading | undefined {
  const size = Math.min(FEW, Math.floor((sizeOf(now) ?? Infinity) / 2));
  if (size === 0) return undefined;
  return isStreamed(now) ? { limit: size } : { first: size };
}

function sizeOf(reading: Reading): number | undefined {
  return isStreamed(reading) ? reading.limit : reading.first;
}

/** The seconds until the caller has all pages that the operation needed, and as many again for the rest of it. */
function secondsOfPages({ minutesOfPages = 0 }: GatewayFailure): number {
  return Math.ceil(60 * Math.min(1, 2 * minutesOfPages));
}

function recordTooCostly({ code, message, resumeAfter }: GatewayFailure): GatewayFailure {
  return new GatewayFailure(
    `${message} This is the cost of a single record with what is selected below it. Select less, take only the first ` +
      'elements of its lists with (first: n), or export without --url, where this limit does not apply.',
    { code, resumeAfter, isTemporary: false },
  );
}

/** The list has fields that a company adds. The gateway sends these in one piece. */
class NotStreamed extends GatewayFailure {
  override name = 'NotStreamed';
  constructor() {
    super(NOT_STREAMED, { isTemporary: false });
  }
}

const NOT_STREAMED =
  'The gateway does not answer these fields in parts, and this list has no connection to read instead. ' +
  'Leave out the fields that the gateway adds to those of the service.';

function isStreamed(reading: Reading): reading is Extract<Reading, { limit: unknown }> {
  return 'limit' in reading;
}

interface PageOfOperation extends Omit<ExportedPage, 'isResumed'> {
  /** Undefined where only the end of the operation shows it. */
  readonly hasMore?: boolean;
}

/** The pages of one operation. @throws GatewayFailure */
async function* pagesOf(
  { gateway, operation, signal }: ExportedPagesOptions,
  after: string | undefined,
  reading: Reading,
): AsyncGenerator<PageOfOperation, void, undefined> {
  const query = isStreamed(reading)
    ? operation.text(reading.limit)
    : operation.window(reading.first)!;
  const request = { query, variables: { after: after ?? null } };
  let hasEnded = false;
  for await (const payload of gateway.stream(request, signal)) {
    const increments = [...(payload.get('incremental')?.elements() ?? [])];
    if (!isStreamed(reading)) return yield* windowOf(payload);
    // By default, @stream sends no records with the first payload.
    const isWhole = payload.get('hasNext') === undefined;
    if (isWhole && payload.get('data')?.get(LIST_KEY)?.kind === 'list') throw new NotStreamed();
    if (!increments[0]) failOn(payload);
    for (const increment of increments) {
      const items = increment.get('items');
      if (items?.kind !== 'list') failOn(increment);
      else if (!items.isEmpty) {
        checkPaid(increment);
        yield pageOf(increment, items);
      }
    }
    hasEnded =
      payload.get('hasNext')?.kind !== 'boolean' || payload.get('hasNext')?.raw === 'false';
  }
  if (!hasEnded) throw GatewayFailure.cutOff(new Error('there was no last payload'));
}

function* windowOf(payload: Json): Generator<PageOfOperation, void, undefined> {
  const connection = payload.get('data')?.get(LIST_KEY);
  const edges = [...(connection?.get('edges')?.elements() ?? [])];
  if (connection?.kind !== 'object') failOn(payload);
  checkPaid(payload);
  const last = edges.at(-1)?.get('cursor')?.string;
  if (last === undefined) return;
  yield {
    records: recordsOf(edges.map((edge) => edge.get('node')!)),
    resumeAfter: last,
    listLength: undefined,
    faults: faultsOf(payload),
    hasMore: connection!.get('pageInfo')?.get('hasNextPage')?.raw === 'true',
  };
}

/** @throws GatewayFailure if a payload without records has an error */
function failOn(payload: Json): void {
  const [error] = payload.get('errors')?.elements() ?? [];
  if (error) throw GatewayFailure.of(error);
}

/** @throws GatewayFailure if a list below a record is null only because the caller has used the pages of the minute */
function checkPaid(answer: Json): void {
  for (const error of answer.get('errors')?.elements() ?? []) {
    const failure = GatewayFailure.of(error);
    if (failure.minutesOfPages !== undefined) throw failure;
  }
}

function pageOf(increment: Json, items: Json): PageOfOperation {
  const extensions = increment.get('extensions');
  const resumeAfter = extensions?.get('resumeAfter')?.string;
  if (resumeAfter === undefined) {
    throw new GatewayFailure(TOO_OLD, { isTemporary: false });
  }
  const length = Number(extensions?.get('listLength')?.raw);
  return {
    records: recordsOf(Array.from(items.elements())),
    resumeAfter,
    listLength: Number.isInteger(length) ? length : undefined,
    faults: faultsOf(increment),
  };
}

function faultsOf(answer: Json): string[] {
  return Array.from(
    answer.get('errors')?.elements() ?? [],
    (error) => error.get('message')?.string ?? 'The gateway gave no reason.',
  );
}

function recordsOf(values: readonly Json[]): ExportedRecord[] {
  return values.map((value) => ({ id: idOf(value), value }));
}

const TOO_OLD =
  'The gateway does not say where to resume, so it is older than this command. Export with the version that it runs.';

function idOf(record: Json): string | null {
  const id = record.get(ID_KEY);
  return id === undefined || id.isNull ? null : (id.string ?? id.raw);
}
