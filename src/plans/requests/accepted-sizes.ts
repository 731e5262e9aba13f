import { GraphQLError } from 'graphql';
import type { RequestOutcome } from '../../answers/envelope.ts';
import type { Clock } from '../../clock.ts';
import { PerhapsTooBig, type ErrorCode, type TooBig } from '../../errors.ts';
import type { UpstreamRequest } from '../call.ts';
import type { PagesToInline } from './request-text.ts';

/*
 * How many records the service returns in one request
 *
 * A service may refuse a page for its size: it counts what a request costs before it executes it, or a proxy gives up
 * waiting. The limit depends on what is selected, and is published nowhere, so it is learned for each list and selection
 * from refusals, and shared by all operations:
 *
 *   the service says so    "maximum query complexity exceeded 5200 > 1000", or status 413. The same page is requested
 *                          with fewer records: the share of the limit where both numbers are known, otherwise half, down
 *                          to a single one. At last the first pages of nested lists are left out of the request.
 *   it is possible         502, 504, or no answer in time. A service that is down does the same, so one trial decides:
 *                          the page with a single record, sent once. If it is answered, it is the page, and the next
 *                          pages grow from there. A list has one trial at a time, and after a failed one a pause.
 *
 * Pages that are accepted for a while are followed by larger ones; each refusal makes that while longer. The page that
 * a caller of FetchPage gets has fewer records than it requested, as where the service has a smaller limit for its
 * pages: nothing is put together. So each page is still an unbroken run of the list, and its cursors hold.
 *
 * Nothing is kept for a selection that was never refused, and its requests are sent as if this file did not exist.
 */

/** What is requested from the service. */
export interface SizedList {
  /** For telemetry, and to have one trial at a time: the upstream's field. */
  readonly list: string;
  /** Names the list and what is selected of its records. */
  readonly selection: () => string;
  /** The size to begin with, from adapters.json. */
  readonly begin: number | undefined;
  /** Whether its request has first pages of nested lists. */
  readonly hasInlinedPages: boolean;
  /**
   * Whether the request is what the caller wrote, apart from the first pages: then the answer to it without them is
   * the answer, whatever it is. Default: false.
   */
  readonly isOfCaller?: boolean;
}

/** A request that may have to be sent with fewer records, or without first pages of nested lists. */
interface SizedRequest<T> {
  write(records: RequestedRecords, pages: PagesToInline): UpstreamRequest<T>;
  send(request: UpstreamRequest<T>): Promise<T>;
}

interface RequestedRecords {
  /** Undefined: as many as the service gives. */
  readonly records: number | undefined;
  /** Whether fewer records are requested than are needed. */
  readonly isPart: boolean;
}

interface Attempt extends RequestedRecords {
  readonly pages: PagesToInline;
  /** Whether an attempt before this one failed, and was charged for. */
  readonly isRepeated: boolean;
  readonly trialMs?: number;
}

export interface Accepted<T> extends RequestedRecords {
  readonly answer: T;
}

export interface AcceptedSizes {
  /** The most records that are requested at a time; undefined: as many as are needed. */
  of(sized: SizedList): number | undefined;
  /**
   * Requests as many of the needed records as the service accepts.
   *
   * @param needed undefined: as many as the service gives
   * @throws OPERATION_TOO_COMPLEX where it refuses a single one, and what `send` throws
   */
  request<T extends RequestOutcome>(
    sized: SizedList,
    needed: number | undefined,
    request: SizedRequest<T>,
  ): Promise<Accepted<T>>;
  /** Call it where the service gave fewer records than this size: its own limit is smaller, so the size is dropped. */
  exceedsLimit(sized: SizedList): void;
}

export interface SizeTelemetry {
  /** A request was refused for its size. */
  tooBig(list: string): void;
  /** Pages of the list have another size from now on. */
  sizeChanged(list: string, size: number): void;
}

/** Selections. Each takes about 200 bytes. */
const MAX_KEPT = 1_000;
/** Records. Of a page that was requested without a size. */
const ASSUMED = 50;
const TRIAL_MS = 10_000;
/** How long a list has no further trial after one that failed. */
const PAUSE_MS = 5_000;
/** A page is requested in smaller parts for this long after its first attempt failed. */
const PATIENCE_MS = 60_000;

export function createAcceptedSizes(clock: Clock, telemetry: SizeTelemetry): AcceptedSizes {
  const kept = new Map<string, AcceptedSize>();
  const trials = createTrials(clock);

  return {
    of: (sized) => known(sized)?.size ?? sized.begin,
    request: async (sized, needed, request) => {
      const size = known(sized) ?? (sized.begin === undefined ? undefined : keep(sized));
      const first = attemptOf(size, needed, Infinity);
      const outcome = await sent(sized, request, first);
      if ('tooBig' in outcome) {
        return requestLess(sized, needed, request, { failed: first, failure: outcome });
      }
      if (size) worked(sized, size, first);
      return outcome;
    },
    exceedsLimit: (sized) => {
      const size = known(sized);
      if (size) size.size = Infinity;
    },
  };

  function known({ selection }: SizedList): AcceptedSize | undefined {
    return kept.size > 0 ? kept.get(selection()) : undefined;
  }

  function keep(sized: SizedList): AcceptedSize {
    const size = known(sized) ?? new AcceptedSize(sized.begin ?? Infinity);
    const key = sized.selection();
    kept.delete(key);
    kept.set(key, size);
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT) kept.delete(oldest!);
    return size;
  }

  async function requestLess<T extends RequestOutcome>(
    sized: SizedList,
    needed: number | undefined,
    request: SizedRequest<T>,
    first: { readonly failed: Attempt; readonly failure: Failure<T> },
  ): Promise<Accepted<T>> {
    const until = clock.elapsed() + PATIENCE_MS;
    const size = keep(sized);
    for (let { failed, failure } = first; ;) {
      const { tooBig } = failure;
      const records = failed.records ?? ASSUMED;
      const mayLeaveOut = sized.hasInlinedPages && failed.pages === 'all';
      telemetry.tooBig(sized.list);
      if (tooBig.isReported) {
        if (records > 1) size.refused(records, tooBig.share);
        else if (mayLeaveOut) size.leaveOutPages();
        else return settled(failure, failed);
      } else if (failed.pages === size.pages && !size.isRefused(records)) {
        if ((records <= 1 && !mayLeaveOut) || clock.elapsed() > until) {
          return settled(failure, failed);
        }
        const trial = trialOf(sized);
        const tried = await trials.of(sized.list, () => sent(sized, request, trial));
        if (tried === 'failed') {
          if (size.isUnknown) kept.delete(sized.selection());
          return settled(failure, failed);
        }
        if (records > 1) size.failed(records);
        else size.leaveOutPages();
        if (tried !== 'passed') {
          worked(sized, size, trial);
          return tried;
        }
      } else if (clock.elapsed() > until) return settled(failure, failed);
      // Each attempt requests less than the one before, whatever other operations have learned since.
      const most = failed.pages === size.pages ? Math.max(1, records - 1) : Infinity;
      const less = { ...attemptOf(size, needed, most), isRepeated: true };
      const outcome = await sent(sized, request, less);
      if (!('tooBig' in outcome)) {
        worked(sized, size, less);
        return outcome;
      }
      [failed, failure] = [less, outcome];
    }
  }

  function worked({ list }: SizedList, size: AcceptedSize, { records = Infinity }: Attempt): void {
    const changed = size.worked(records);
    if (changed !== undefined) telemetry.sizeChanged(list, changed);
  }
}

/** An attempt that failed, perhaps because of its size. */
interface Failure<T> {
  readonly tooBig: TooBig;
  /** What the service answered; undefined if there was no answer. */
  readonly answer?: T;
  readonly error?: unknown;
}

/** @throws errors that do not depend on the size */
async function sent<T extends RequestOutcome>(
  { hasInlinedPages, isOfCaller = false }: SizedList,
  { write, send }: SizedRequest<T>,
  attempt: Attempt,
): Promise<Accepted<T> | Failure<T>> {
  const { pages: inlined, isRepeated, trialMs } = attempt;
  const isFinal = isOfCaller && inlined === 'none' && trialMs === undefined;
  const written = (pages: PagesToInline) => {
    const request = write(attempt, pages);
    return isRepeated ? repeated(request, trialMs) : request;
  };
  try {
    const answer = await (hasInlinedPages
      ? requestSparingParents(send, written, inlined)
      : send(written(inlined)));
    const { tooBig } = answer;
    return tooBig && !isFinal ? { tooBig, answer } : { answer, ...attempt };
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (isFinal || !(cause instanceof PerhapsTooBig)) throw error;
    return { tooBig: cause, error };
  }
}

/**
 * Sends a request, and sends it again without the inlined pages whose failure also nulled their parent. That happens
 * where the upstream's list must not be null. The derived field may be null, so its failure must not null the parent.
 */
export async function requestSparingParents<T extends RequestOutcome>(
  send: SizedRequest<T>['send'],
  write: (pages: PagesToInline) => UpstreamRequest<T>,
  pages: PagesToInline = 'all',
): Promise<T> {
  let answer = await send(write(pages));
  if (answer.nullingPages.size > 0) answer = await send(write(answer.nullingPages));
  // The first failures may have hidden others.
  if (answer.nullingPages.size > 0) answer = await send(write('safe'));
  return answer;
}

/** @throws the failure, unless it is an answer that does not mention its size */
function settled<T>({ tooBig, answer, error }: Failure<T>, attempt: Attempt): Accepted<T> {
  if (!tooBig.isReported) {
    if (answer === undefined) throw error;
    return { answer, ...attempt };
  }
  const said = tooBig.message || (error as Error).message;
  const words = /[.!?]$/.test(said) ? said : `${said}.`;
  throw new RecordTooBig(words, error);
}

/** The service refuses even a single record. */
export class RecordTooBig extends GraphQLError {
  override name = 'RecordTooBig';
  constructor(words: string, cause: unknown) {
    super(
      `The recruiting service refuses even a single record with these fields: ${words} ` +
        'Request fewer fields of the records, and fewer lists below them.',
      { extensions: { code: 'OPERATION_TOO_COMPLEX' satisfies ErrorCode } },
    );
    this.cause = cause;
  }
}

/** The request of a repeated attempt: the one before was charged for, and no other request joins a trial. */
function repeated<T>(request: UpstreamRequest<T>, trialMs: number | undefined): UpstreamRequest<T> {
  const key = trialMs === undefined ? request.key : `${request.key} trial`;
  return { ...request, pages: 0, key, trialMs };
}

/** The first pages of nested lists may be what the service refuses. */
function trialOf({ hasInlinedPages }: SizedList): Attempt {
  const pages = hasInlinedPages ? 'none' : 'all';
  return { records: 1, pages, isPart: true, isRepeated: true, trialMs: TRIAL_MS };
}

function attemptOf(size: AcceptedSize | undefined, needed: number | undefined, most: number) {
  const largest = Math.min(size?.size ?? Infinity, most);
  const isPart = largest < (needed ?? Infinity);
  return {
    records: isPart ? largest : needed,
    pages: size?.pages ?? 'all',
    isPart,
    isRepeated: false,
  } satisfies Attempt;
}

/** Accepted pages until a larger one is requested. */
const FIRST_WHILE = 50;
const LONGEST_WHILE = 1_024;

/** The size of the pages of one selection. */
class AcceptedSize {
  size: number;
  pages: PagesToInline = 'all';
  /** The smallest size that failed, as far as that is still believed. */
  #refused = Infinity;
  #while = FIRST_WHILE;
  #good = 0;
  /** The size after the latest refusal. Pages were accepted since then, or not. */
  #settled = 0;
  #hasWorked = false;
  /** Whether each accepted page is followed by a larger one: after a trial, which had a single record. */
  #isGrowing = false;
  #lastWorked = 0;
  #withoutPages = 0;
  #reported: number;

  constructor(size: number) {
    this.size = size;
    this.#reported = size;
  }

  get isUnknown(): boolean {
    return this.size === Infinity && this.pages === 'all';
  }

  isRefused(records: number): boolean {
    return records >= this.#refused;
  }

  /** The service says that this number of records is too large. @param share the part that it would have accepted */
  refused(records: number, share: number | undefined): void {
    // Other pages may have been refused at the same time.
    if (records > this.size) return;
    this.#lower(records, Math.floor(records * (share ?? 0.5)));
    // The limit is known, and so is that any larger page exceeds it.
    if (share !== undefined) this.#refused = this.size + 1;
    this.#isGrowing = false;
  }

  /** A request for this number of records failed, and one for a single record did not. */
  failed(records: number): void {
    if (records > this.size) return;
    this.#lower(records, this.#lastWorked < records ? this.#lastWorked : 1);
    this.#isGrowing = true;
  }

  /** A single record is refused with the first pages of its lists. From now on, these have requests of their own. */
  leaveOutPages(): void {
    this.pages = 'none';
    this.size = Infinity;
    this.#refused = Infinity;
    this.#lastWorked = 0;
    this.#withoutPages = 0;
  }

  /** @returns the size if it is a new one */
  worked(records: number): number | undefined {
    if (this.pages === 'none' && (this.#withoutPages += 1) > LONGEST_WHILE) this.pages = 'all';
    this.#lastWorked = Math.max(Math.min(records, this.size), this.#lastWorked);
    // Some requests leave out the overlap of pages.
    if (this.size === Infinity || 2 * records < this.size) return undefined;
    const changed = this.size === this.#reported ? undefined : this.size;
    this.#reported = this.size;
    this.#hasWorked = true;
    this.#good += 1;
    if (records > this.#settled) {
      // The limit has risen.
      this.#settled = records;
      this.#while = FIRST_WHILE;
    }
    const mayDouble = 2 * this.size < this.#refused;
    if (this.#good < (this.#isGrowing && mayDouble ? 1 : this.#while)) return changed;
    this.#good = 0;
    if (mayDouble) this.size *= 2;
    else if (this.#refused - this.size > Math.max(1, this.size / 8)) {
      this.size += Math.ceil((this.#refused - this.size) / 2);
    } else this.#refused = Infinity;
    return changed;
  }

  #lower(refused: number, size: number): void {
    this.#refused = refused;
    this.size = Math.max(1, Math.min(size, refused - 1));
    if (this.#hasWorked) this.#while = Math.min(this.#while * 4, LONGEST_WHILE);
    this.#hasWorked = false;
    this.#settled = this.size;
    this.#good = 0;
  }
}

/** The trials of all lists: one at a time for each. */
function createTrials(clock: Clock) {
  const running = new Map<string, Promise<'passed' | 'failed' | 'left'>>();
  const pausedUntil = new Map<string, number>();

  return { of };

  /** @returns what was accepted; `passed` if the trial was that of another page */
  async function of<T>(
    list: string,
    send: () => Promise<Accepted<T> | Failure<T>>,
  ): Promise<Accepted<T> | 'passed' | 'failed'> {
    for (let other = running.get(list); other; other = running.get(list)) {
      const outcome = await other;
      if (outcome !== 'left') return outcome;
    }
    if ((pausedUntil.get(list) ?? -Infinity) > clock.elapsed()) return 'failed';
    const trial = send();
    const outcome = trial.then(
      (tried) => ('tooBig' in tried ? 'failed' : 'passed'),
      (error: unknown) => (isLeaving(error) ? 'left' : 'failed'),
    );
    running.set(list, outcome);
    try {
      const tried = (await outcome) === 'passed' ? await trial : undefined;
      if (tried && !('tooBig' in tried)) return tried;
      if ((await outcome) === 'failed') pausedUntil.set(list, clock.elapsed() + PAUSE_MS);
      return 'failed';
    } finally {
      running.delete(list);
    }
  }
}

/** The caller of the trial left, which says nothing about the service. */
function isLeaving(error: unknown): boolean {
  return !(error instanceof GraphQLError) && (error as Error).name !== 'TimeoutError';
}
