import type { Clock } from '../clock.ts';
import type { Json } from '../json.ts';
import { ID_KEY, type ExportOperation } from './export-operation.ts';
import { GatewayFailure } from './gateway-failure.ts';
import type { Gateway } from './gateway.ts';

/** The records of one page, in the order of the list. */
export interface ExportedPage {
  readonly records: readonly ExportedRecord[];
  /** A cursor behind the last one. */
  readonly resumeAfter: string;
  /** How many records the list had when the gateway last read it whole. */
  readonly listLength: number | undefined;
  /** How many records the service said that the list has. */
  readonly counted: number | undefined;
  /** Why values are null that the service could not give. */
  readonly faults: readonly string[];
  /** Whether it is not known to begin exactly behind the page before: another operation was sent in between. */
  readonly isResumed: boolean;
}

export interface ExportedRecord {
  /** Null if the record has none. */
  readonly id: string | null;
  /** An object; null for a record that the service could not give. */
  readonly value: Json;
}

export interface ExportedPagesOptions {
  readonly gateway: Gateway;
  readonly operation: ExportOperation;
  /** Undefined: from the start of the list. */
  readonly after: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called before each wait after a failure. */
  readonly onWait: (failure: GatewayFailure, seconds: number) => void;
}

/** A failure is final after this time without a new record. */
const PATIENCE_MS = 5 * 60_000;
const LONGEST_WAIT_S = 30;
/** Records of one operation, where the pages of the whole list are more than the gateway lets one operation use. */
const PART = 5_000;

/**
 * Reads a list to its end. When an operation fails or reaches a limit of the gateway, another one continues behind the
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
  let limit: number | undefined;
  let wait = 1;
  let patienceEnds = clock.elapsed() + PATIENCE_MS;
  for (;;) {
    let count = 0;
    try {
      for await (const page of pagesOf(options, after, limit)) {
        count += page.records.length;
        after = page.resumeAfter;
        yield { ...page, isResumed };
        wait = 1;
        patienceEnds = clock.elapsed() + PATIENCE_MS;
      }
      if (limit === undefined || count < limit) return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GatewayFailure)) throw error;
      after = error.resumeAfter ?? after;
      if (error.code === 'CURSOR_INVALID' && after !== undefined && count === 0) {
        // Its record is gone, and where it stood is unknown. What is in the file already is left out again.
        after = undefined;
      } else if (error.code === 'OPERATION_TOO_COMPLEX' && limit === undefined && count === 0) {
        limit = PART;
      } else if (error.code !== 'DRAIN_LIMIT_EXCEEDED' || count === 0) {
        const seconds = error.retryAfter ?? wait;
        if (!error.isTemporary || clock.elapsed() + seconds * 1000 > patienceEnds) throw error;
        options.onWait(error, seconds);
        await clock.sleep(seconds * 1000, signal);
        wait = Math.min(2 * wait, LONGEST_WAIT_S);
      }
    }
    isResumed = true;
  }
}

type PageOfOperation = Omit<ExportedPage, 'isResumed'>;

/** The pages of one operation. @throws GatewayFailure */
async function* pagesOf(
  { gateway, operation, signal }: ExportedPagesOptions,
  after: string | undefined,
  limit: number | undefined,
): AsyncGenerator<PageOfOperation, void, undefined> {
  const request = { query: operation.text(limit), variables: { after: after ?? null } };
  let hasEnded = false;
  for await (const payload of gateway.stream(request, signal)) {
    const increments = [...(payload.get('incremental')?.elements() ?? [])];
    // The first payload has no records, since @stream sends none with it by default.
    if (!increments[0]) failOn(payload);
    for (const increment of increments) {
      const items = increment.get('items');
      if (items?.kind !== 'list') failOn(increment);
      else if (!items.isEmpty) yield pageOf(increment, items);
    }
    hasEnded =
      payload.get('hasNext')?.kind !== 'boolean' || payload.get('hasNext')?.raw === 'false';
  }
  if (!hasEnded) throw GatewayFailure.cutOff(new Error('there was no last payload'));
}

/** @throws GatewayFailure if a payload without records has an error */
function failOn(payload: Json): void {
  const [error] = payload.get('errors')?.elements() ?? [];
  if (error) throw GatewayFailure.of(error);
}

function pageOf(increment: Json, items: Json): PageOfOperation {
  const extensions = increment.get('extensions');
  const resumeAfter = extensions?.get('resumeAfter')?.string;
  if (resumeAfter === undefined) {
    throw new GatewayFailure(TOO_OLD, { isTemporary: false });
  }
  const wholeOf = (key: string) => {
    const number = Number(extensions?.get(key)?.raw);
    return Number.isInteger(number) ? number : undefined;
  };
  return {
    records: Array.from(items.elements(), (value) => ({ id: idOf(value), value })),
    resumeAfter,
    listLength: wholeOf('listLength'),
    counted: wholeOf('counted'),
    faults: Array.from(
      increment.get('errors')?.elements() ?? [],
      (error) => error.get('message')?.string ?? 'The gateway gave no reason.',
    ),
  };
}

const TOO_OLD =
  'The gateway does not say where to resume, so it is older than this command. Export with the version that it runs.';

function idOf(record: Json): string | null {
  const id = record.get(ID_KEY);
  return id === undefined || id.isNull ? null : (id.string ?? id.raw);
}
