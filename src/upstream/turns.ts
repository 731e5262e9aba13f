import { GraphQLError } from 'graphql';
import type { Clock } from '../clock.ts';
import type { ErrorCode } from '../errors.ts';
import { Queue } from '../queue.ts';
import type { Priority, Sender } from '../service/request.ts';

/** Call it once, when the request is over. */
type EndTurn = () => void;

export interface TurnsLoad {
  readonly inFlight: number;
  readonly waiting: Readonly<Record<Priority, number>>;
}

interface TurnsOptions {
  /** The most requests that have a turn at the same time (slots). */
  readonly concurrency: number;
  /** The number of root fields. */
  readonly fields: number;
  readonly clock: Clock;
}

/** The most interactive requests that may wait, per slot. */
const WAITING_PER_SLOT = 100;
const FULL_RETRY_SECONDS = 5;
/** A field is slow while a request for it has been in flight for longer than this. */
const SLOW_MS = 5_000;

/**
 * Limits how many requests are in flight. Three rules decide which is next:
 * - Interactive requests overtake waiting drains, and a quarter of the slots is reserved for them, so that they do not
 * wait for a slow page either.
 * - An eighth of the slots is reserved for fields other than one that does not answer: a list that hangs leaves room
 * for all others.
 * - Callers take turns.
 */
export function createTurns({ concurrency, fields: fieldCount, clock }: TurnsOptions) {
  const maxDrains = concurrency > 1 ? concurrency - Math.max(1, Math.floor(concurrency / 4)) : 1;
  const maxOfSilentField = concurrency - (fieldCount > 1 ? Math.floor(concurrency / 8) : 0);
  const hasReserve = maxOfSilentField < concurrency;
  const fields = new Map<string, FieldInFlight>();
  const inFlight = { interactive: 0, drain: 0 };
  const waiting = {
    interactive: new Queue<string, EndTurn>({ clock, tooLate }),
    drain: new Queue<string, EndTurn>({ clock, tooLate }),
  };

  return {
    /**
     * Gives a request its turn, or returns a promise of it if the request has to wait.
     *
     * @param until when to give up, by `clock.elapsed`
     * @throws the abort reason of the signal, and NoTurn: too many requests wait, or no slot was free in time
     */
    take: (
      field: string,
      { priority, caller, signal }: Pick<Sender, 'priority' | 'caller' | 'signal'>,
      until: number,
    ): EndTurn | Promise<EndTurn> => {
      signal.throwIfAborted();
      if (hasSlot(priority) && isOpen(field)) return begin(field, priority);
      const queue = waiting[priority];
      if (priority === 'interactive' && queue.isFull(caller, concurrency * WAITING_PER_SLOT)) {
        throw queueFull();
      }
      return queue.wait(field, { owner: caller, signal, until: () => until });
    },
    get load(): TurnsLoad {
      return {
        inFlight: inFlight.interactive + inFlight.drain,
        waiting: { interactive: waiting.interactive.size, drain: waiting.drain.size },
      };
    },
  };

  function hasSlot(priority: Priority): boolean {
    if (inFlight.interactive + inFlight.drain >= concurrency) return false;
    return priority === 'interactive' || inFlight.drain < maxDrains;
  }

  function isOpen(field: string): boolean {
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
    const request = { since: hasReserve ? clock.elapsed() : 0, answersBefore: same.answers };
    same.requests.add(request);
    inFlight[priority] += 1;
    return () => {
      inFlight[priority] -= 1;
      same.requests.delete(request);
      if (same.requests.size === 0) fields.delete(field);
      else if (hasReserve && clock.elapsed() - request.since < SLOW_MS) same.answers += 1;
      serve('interactive');
      serve('drain');
    };
  }

  function serve(priority: Priority): void {
    const queue = waiting[priority];
    if (queue.size === 0) return;
    for (const { entry: field, begin: beginWith } of queue) {
      if (!hasSlot(priority)) return;
      if (isOpen(field)) beginWith(begin(field, priority));
    }
  }
}

interface FieldInFlight {
  /** In the order in which they began. */
  readonly requests: Set<{ readonly since: number; readonly answersBefore: number }>;
  /** How many requests ended before they were slow. */
  answers: number;
}

/** The error of a request that got no turn, so that nothing was sent. */
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
