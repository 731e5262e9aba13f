import type { GraphQLError } from 'graphql';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { Queue } from '../queue.ts';
import type { Failure, Priority, Wrapper } from './request.ts';

/** How many requests of each priority wait for their turn. */
export type Waiting = Readonly<Record<Priority, number>>;

/** The most interactive requests that may wait, per slot. */
const WAITING_PER_SLOT = 100;
const FULL_RETRY_SECONDS = 5;
/** How long a request may wait for its turn, ms. */
const PATIENCE_MS = 30_000;

/**
 * Limits how many requests are in flight. Interactive requests overtake waiting drains, and a quarter of the slots is
 * reserved for them, so that they do not wait for a slow page either. Callers take turns.
 *
 * @param parts `concurrency`: the most requests in flight (slots)
 */
export function createTurns({ concurrency, clock }: { concurrency: number; clock: Clock }) {
  const maxDrains = concurrency > 1 ? concurrency - Math.max(1, Math.floor(concurrency / 4)) : 1;
  const inFlight = { interactive: 0, drain: 0 };
  const waiting = {
    interactive: new Queue(clock, tooLate),
    drain: new Queue(clock, tooLate),
  };

  /** A request that gets no turn in time, or that would wait behind too many others, fails unsent. */
  const inTurn: Wrapper = (next) => async (request, sender) => {
    const { priority, caller, signal } = sender;
    signal.throwIfAborted();
    if (hasSlot(priority)) inFlight[priority] += 1;
    else {
      const queue = waiting[priority];
      if (priority === 'interactive' && queue.isFull(caller, concurrency * WAITING_PER_SLOT)) {
        return unsent(queueFull());
      }
      try {
        await queue.wait({ owner: caller, signal, patience: PATIENCE_MS });
      } catch (error) {
        if (signal.aborted) throw error;
        return unsent(error as GraphQLError);
      }
    }
    try {
      return await next(request, sender);
    } finally {
      inFlight[priority] -= 1;
      serve('interactive');
      serve('drain');
    }
  };

  return {
    inTurn,
    get waiting(): Waiting {
      return { interactive: waiting.interactive.size, drain: waiting.drain.size };
    },
  };

  function hasSlot(priority: Priority): boolean {
    if (inFlight.interactive + inFlight.drain >= concurrency) return false;
    return priority === 'interactive' || inFlight.drain < maxDrains;
  }

  function serve(priority: Priority): void {
    while (hasSlot(priority) && waiting[priority].begin()) inFlight[priority] += 1;
  }
}

function unsent(error: GraphQLError): Failure {
  return { kind: 'failure', error, isUnsent: true };
}

function queueFull(): GraphQLError {
  return codedError(
    'RATE_LIMITED',
    `Nothing was sent: too many requests wait for the recruiting service. Try again in ${FULL_RETRY_SECONDS} s.`,
    { extensions: { retryAfter: FULL_RETRY_SECONDS, limit: 'UPSTREAM_CONCURRENCY' } },
  );
}

function tooLate(): GraphQLError {
  return codedError(
    'UPSTREAM_TIMEOUT',
    'Nothing was sent: earlier requests to the recruiting service took too long. Try again later.',
    { extensions: { limit: 'UPSTREAM_CONCURRENCY' } },
  );
}
