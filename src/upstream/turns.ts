import { GraphQLError } from 'graphql';
import type { Clock } from '../clock.ts';
import type { ErrorCode } from '../errors.ts';
import { createFairQueue } from '../fair-queue.ts';
import type { Priority, Sender } from '../service-request.ts';

export interface Turns {
  /**
   * Gives a request its turn, or a promise of it if it has to wait.
   *
   * @param until by `clock.elapsed`
   * @throws the abort reason of the signal, and NoTurn: too many requests wait, or there was no turn in time
   */
  take(field: string, sender: QueuedSender, until: number): EndTurn | Promise<EndTurn>;
  readonly load: TurnsLoad;
}

export type QueuedSender = Pick<Sender, 'priority' | 'caller' | 'signal'>;

/** To be called once, when the request is over. */
export type EndTurn = () => void;

export interface TurnsLoad {
  readonly inFlight: number;
  readonly waiting: Readonly<Record<Priority, number>>;
}

export interface TurnsOptions {
  /** Slots: how many requests have a turn at the same time. */
  readonly concurrency: number;
  /** How many root fields there are. */
  readonly fields: number;
  readonly clock: Clock;
}

/** How many interactive requests may wait, per slot. */
const WAITING_PER_SLOT = 100;
const FULL_RETRY_SECONDS = 5;
/** A field is slow while a request for it has been in flight for longer than this. */
const SLOW_MS = 5_000;

/**
 * Limits how many requests are in flight. Three rules decide who is next:
 * - Interactive requests overtake waiting drains, and a quarter of the slots is reserved for them, so that none has to
 *   wait for a slow page either.
 * - An eighth of the slots is reserved for other fields than one whose answers do not come: a list that hangs leaves
 *   room for all others.
 * - Callers take turns.
 */
export function createTurns({ concurrency, fields: fieldCount, clock }: TurnsOptions): Turns {
  const maxDrains = concurrency > 1 ? concurrency - Math.max(1, Math.floor(concurrency / 4)) : 1;
  const maxOfSilentField = concurrency - (fieldCount > 1 ? Math.floor(concurrency / 8) : 0);
  const hasReserve = maxOfSilentField < concurrency;
  const fields = new Map<string, FieldInFlight>();
  const inFlight = { interactive: 0, drain: 0 };
  const waiting = {
    interactive: createFairQueue<Waiting>(),
    drain: createFairQueue<Waiting>(),
  };
  /** When the timer ends, by `clock.elapsed`, and what restarts it; undefined while nothing waits. */
  let timer: { readonly until: number; readonly restart: AbortController } | undefined;

  return {
    take: (field, sender, until) => {
      sender.signal.throwIfAborted();
      const { priority } = sender;
      return hasSlot(field, priority) ? begin(field, priority) : wait(field, sender, until);
    },
    get load() {
      return {
        inFlight: inFlight.interactive + inFlight.drain,
        waiting: { interactive: waiting.interactive.size, drain: waiting.drain.size },
      };
    },
  };

  function hasSlot(field: string, priority: Priority): boolean {
    if (inFlight.interactive + inFlight.drain >= concurrency) return false;
    if (priority === 'drain' && inFlight.drain >= maxDrains) return false;
    const same = fields.get(field);
    return !same || same.requests.size < maxOfSilentField || isAnswering(same);
  }

  /** The oldest request decides: a later one was answered before it, and it is not slow itself. */
  function isAnswering({ requests, answers }: FieldInFlight): boolean {
    const [oldest] = requests;
    if (!oldest) return true;
    return answers > oldest.answersBefore && clock.elapsed() - oldest.since < SLOW_MS;
  }

  function begin(field: string, priority: Priority): EndTurn {
    const same = fields.get(field) ?? { requests: new Set(), answers: 0 };
    fields.set(field, same);
    // Reading a clock that counts suspend is not cheap.
    const own = { since: hasReserve ? clock.elapsed() : 0, answersBefore: same.answers };
    same.requests.add(own);
    inFlight[priority] += 1;
    return () => {
      inFlight[priority] -= 1;
      same.requests.delete(own);
      if (same.requests.size === 0) fields.delete(field);
      else if (hasReserve && clock.elapsed() - own.since < SLOW_MS) same.answers += 1;
      serve(waiting.interactive);
      serve(waiting.drain);
    };
  }

  function wait(field: string, sender: QueuedSender, until: number): Promise<EndTurn> {
    const { priority, caller, signal } = sender;
    const queue = waiting[priority];
    if (priority === 'interactive' && queue.isFull(caller, concurrency * WAITING_PER_SLOT)) {
      throw queueFull();
    }
    const { promise, resolve, reject } = Promise.withResolvers<EndTurn>();
    const stopWaiting = () => {
      signal.removeEventListener('abort', onAbort);
      if (waiting.interactive.size + waiting.drain.size === 0) timer?.restart.abort(TIMER_ENDED);
    };
    const leave = (reason: unknown) => {
      queue.delete(caller, entry);
      stopWaiting();
      reject(reason);
    };
    const onAbort = () => leave(signal.reason);
    const entry: Waiting = {
      field,
      priority,
      until,
      call: () => {
        queue.take(caller, entry);
        stopWaiting();
        resolve(begin(field, priority));
      },
      refuse: () => leave(tooLate()),
    };
    queue.add(caller, entry);
    signal.addEventListener('abort', onAbort);
    if (!timer) void refuseLate();
    else if (until < timer.until) timer.restart.abort(TIMER_ENDED);
    return promise;
  }

  /**
   * Refuses requests that waited too long, as long as any waits. One timer for all of them: most get their turn soon,
   * and to stop a timer for each would cost more than the wait.
   */
  async function refuseLate(): Promise<void> {
    for (;;) {
      const requests = [...waiting.interactive, ...waiting.drain];
      const now = clock.elapsed();
      for (const { until, refuse } of requests) if (until <= now) refuse();
      const until = Math.min(...requests.map((one) => one.until).filter((time) => time > now));
      if (until === Infinity) break;
      timer = { until, restart: new AbortController() };
      await clock.sleep(until - now, timer.restart.signal).catch(() => {});
    }
    timer = undefined;
  }

  function serve(queue: Iterable<Waiting> & { readonly size: number }): void {
    if (queue.size === 0) return;
    for (const { field, priority, call } of queue) {
      if (inFlight.interactive + inFlight.drain >= concurrency) return;
      if (hasSlot(field, priority)) call();
    }
  }
}

/** Made once: a new one, with its stack, would cost more than the wait. */
const TIMER_ENDED = new DOMException('The timer is set anew, or not needed.', 'AbortError');

interface Waiting {
  readonly field: string;
  readonly priority: Priority;
  /** By `clock.elapsed`. */
  readonly until: number;
  call(): void;
  refuse(): void;
}

interface FieldInFlight {
  /** In the order in which they began. */
  readonly requests: Set<{ readonly since: number; readonly answersBefore: number }>;
  /** How many ended before they were slow. */
  answers: number;
}

/** A coded error: nothing was sent, because the request got no turn. */
export class NoTurn extends GraphQLError {
  override name = 'NoTurn';

  constructor(code: ErrorCode, message: string, extensions: object = {}) {
    super(message, { extensions: { ...extensions, code } });
  }
}

function queueFull() {
  return new NoTurn(
    'RATE_LIMITED',
    `Nothing was sent: too many requests wait for the recruiting service. Try again in ${FULL_RETRY_SECONDS} s.`,
    { retryAfter: FULL_RETRY_SECONDS },
  );
}

function tooLate() {
  return new NoTurn(
    'UPSTREAM_TIMEOUT',
    'Nothing was sent: earlier requests to the recruiting service took too long. Try again later.',
  );
}
