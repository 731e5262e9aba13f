import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { createFairQueue } from '../fair-queue.ts';

/** Somebody waits for this one answer, or it is one of the many pages of a walk. */
export type Priority = 'interactive' | 'drain';

export interface Turns {
  /**
   * Does the task when it is its turn. Who is aborted while waiting leaves the queue at once.
   *
   * @throws what the task throws, the abort reason of the signal, and a coded error when there is no turn in time
   */
  take<T>(task: () => Promise<T>, by: TurnTaker): Promise<T>;
  readonly load: TurnsLoad;
}

export interface TurnsLoad {
  readonly inFlight: number;
  readonly waiting: Readonly<Record<Priority, number>>;
}

export interface TurnTaker {
  readonly priority: Priority;
  /** The field of the root that is asked for. */
  readonly field: string;
  /** Whose turn it is: of those who wait, each caller has one after the other. */
  readonly caller: string;
  readonly signal: AbortSignal;
  /** By `clock.elapsed`: who has no turn by then leaves. */
  readonly until: number;
}

export interface TurnsOptions {
  readonly concurrency: number;
  /** How many fields can be asked for. */
  readonly fields: number;
  readonly clock: Clock;
}

/** Interactive tasks that may wait, for each that may be under way. */
const WAITING_PER_PLACE = 100;
const FULL_RETRY_SECONDS = 5;
/** A field with an answer out for longer than this is slow. */
const SLOW_MS = 5_000;

/**
 * So many tasks at a time. Interactive ones overtake drains that wait, and a quarter of the places is theirs
 * alone, so that none of them has to wait for a slow page either. An eighth is not given to a field whose
 * answers do not come, so that a list that hangs leaves room for all others. Of those who wait, it is the turn of one
 * caller after the other.
 */
export function createTurns({ concurrency, fields: known, clock }: TurnsOptions): Turns {
  const mostDrains = concurrency > 1 ? concurrency - Math.max(1, Math.floor(concurrency / 4)) : 1;
  const mostOfSilent = concurrency - (known > 1 ? Math.floor(concurrency / 8) : 0);
  const isKept = mostOfSilent < concurrency;
  const fields = new Map<string, FieldTasks>();
  const waiting = {
    interactive: createFairQueue<Waiting>(),
    drain: createFairQueue<Waiting>(),
  };
  const underWay = { interactive: 0, drain: 0 };

  return {
    take: async (task, taker) => {
      taker.signal.throwIfAborted();
      const end = hasPlace(taker) ? begin(taker) : await turnOf(taker);
      try {
        return await task();
      } finally {
        end();
      }
    },
    get load() {
      return {
        inFlight: underWay.interactive + underWay.drain,
        waiting: { interactive: waiting.interactive.size, drain: waiting.drain.size },
      };
    },
  };

  function hasPlace({ priority, field }: TurnTaker): boolean {
    if (underWay.interactive + underWay.drain >= concurrency) return false;
    if (priority === 'drain' && underWay.drain >= mostDrains) return false;
    const tasks = fields.get(field);
    return !tasks || tasks.underWay.size < mostOfSilent || isAnswering(tasks);
  }

  /** @returns what to call when the task has ended */
  function begin({ priority, field }: TurnTaker): () => void {
    const tasks = fields.get(field) ?? { underWay: new Set(), answers: 0 };
    fields.set(field, tasks);
    // To ask a clock that counts suspend is not cheap.
    const task = { since: isKept ? clock.elapsed() : 0, answersBefore: tasks.answers };
    tasks.underWay.add(task);
    underWay[priority] += 1;
    return () => {
      underWay[priority] -= 1;
      tasks.underWay.delete(task);
      if (tasks.underWay.size === 0) fields.delete(field);
      else if (isKept && clock.elapsed() - task.since < SLOW_MS) tasks.answers += 1;
      callNext();
    };
  }

  /** The oldest one under way says it: later ones were answered before it, and it is not slow itself. */
  function isAnswering(tasks: FieldTasks): boolean {
    const [oldest] = tasks.underWay;
    if (!oldest) return true;
    return tasks.answers > oldest.answersBefore && clock.elapsed() - oldest.since < SLOW_MS;
  }

  function turnOf(taker: TurnTaker): Promise<() => void> {
    const { priority, caller, signal, until } = taker;
    const line = waiting[priority];
    const most = concurrency * WAITING_PER_PLACE;
    if (priority === 'interactive' && line.isFull(caller, most)) throw full();
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const leave = (reason: unknown) => {
      line.delete(caller, place);
      stopWaiting();
      reject(reason);
    };
    const onAbort = () => leave(signal.reason);
    const waited = new AbortController();
    clock.sleep(Math.max(0, until - clock.elapsed()), waited.signal).then(
      () => leave(tooLate()),
      () => {},
    );
    const stopWaiting = () => {
      waited.abort();
      signal.removeEventListener('abort', onAbort);
    };
    const place: Waiting = {
      taker,
      call: () => {
        line.take(caller, place);
        stopWaiting();
        resolve(begin(taker));
      },
    };
    signal.addEventListener('abort', onAbort);
    line.add(caller, place);
    return promise;
  }

  function callNext(): void {
    for (const line of [waiting.interactive, waiting.drain]) {
      for (const place of line) {
        if (underWay.interactive + underWay.drain >= concurrency) return;
        if (hasPlace(place.taker)) place.call();
      }
    }
  }
}

interface Waiting {
  readonly taker: TurnTaker;
  call(): void;
}

interface FieldTasks {
  /** In the order of their beginning. */
  readonly underWay: Set<{ readonly since: number; readonly answersBefore: number }>;
  /** How many ended before they were slow. */
  answers: number;
}

function full() {
  return codedError(
    'RATE_LIMITED',
    `Nothing was sent: too many requests wait for the recruiting service. Try again in ${FULL_RETRY_SECONDS} s.`,
    { extensions: { retryAfter: FULL_RETRY_SECONDS } },
  );
}

function tooLate() {
  return codedError(
    'UPSTREAM_TIMEOUT',
    'Nothing was sent: the requests to the recruiting service before this one took too long. Try again later.',
  );
}
