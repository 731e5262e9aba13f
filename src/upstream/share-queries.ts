import { GraphQLError } from 'graphql';
import { OperatorError } from '../errors.ts';
import { keyOf, ServiceResult, type OutgoingRequest, type Sender } from '../service/request.ts';
import type { UpstreamResult } from './read-response.ts';

type SendQuery = (query: OutgoingRequest, sender: Sender) => Promise<UpstreamResult>;

/** Sends queries that are the same at the same time once. */
export function shareQueries(send: SendQuery) {
  /** By body and key: an interactive query does not wait for the same query of a drain. */
  const inFlight = {
    interactive: new Map<string, Slot>(),
    drain: new Map<string, Slot>(),
  };

  return {
    /**
     * Joins the same query in flight, or sends this one. Everyone who joined gets a result of their own, with the
     * reading that all share.
     */
    send: (query: OutgoingRequest, sender: Sender): Promise<ServiceResult<unknown>> =>
      new Promise((resolve, reject) => {
        sender.signal.throwIfAborted();
        const queries = inFlight[sender.priority];
        const key = keyOf(query);
        let shared = queries.get(key)?.shared;
        if (!shared) {
          const slot: Slot = { shared: undefined };
          shared = slot.shared = new SharedQuery(() => {
            if (queries.get(key) === slot) queries.delete(key);
            slot.shared = undefined;
          });
          queries.set(key, slot);
          shared.send(send, query, sender);
        }
        shared.join(sender, resolve, reject);
      }),
    /** Queries sent later join none that is in flight now; those that have joined still get the result. */
    stopJoining: () => {
      inFlight.interactive.clear();
      inFlight.drain.clear();
    },
  };
}

/**
 * Emptied when the query is over. A map that often grows and shrinks leaves old tables behind, each with the entries of
 * its time and a reference to the next one: once one of them is in old space, all requests would stay in memory until
 * the next full collection.
 */
interface Slot {
  shared: SharedQuery | undefined;
}

/** One query, sent for everyone who joins it. It is aborted when all of them have left. */
class SharedQuery {
  readonly #joined = new Set<Joined>();
  readonly #allLeft = new AbortController();
  readonly #onOver: () => void;

  /** @param onOver called when it cannot be joined any more */
  constructor(onOver: () => void) {
    this.#onOver = onOver;
  }

  send(send: SendQuery, query: OutgoingRequest, { priority, caller, cause }: Sender): void {
    const all: Sender = {
      priority,
      caller,
      cause,
      signal: this.#allLeft.signal,
      onPressure: () => this.#joined.forEach(({ sender }) => sender.onPressure?.()),
    };
    send(query, all).then(
      ({ value, answer }) =>
        this.#settle(({ resolve }) => resolve(new ServiceResult(value, answer))),
      (error) =>
        this.#settle(({ reject }) => reject(error instanceof GraphQLError ? copyOf(error) : error)),
    );
  }

  join(sender: Sender, resolve: Joined['resolve'], reject: Joined['reject']): void {
    const joined: Joined = { sender, resolve, reject, leave: () => this.#leave(joined) };
    this.#joined.add(joined);
    sender.signal.addEventListener('abort', joined.leave);
  }

  #settle(deliver: (joined: Joined) => void): void {
    this.#onOver();
    for (const joined of this.#joined) {
      joined.sender.signal.removeEventListener('abort', joined.leave);
      deliver(joined);
    }
  }

  #leave(joined: Joined): void {
    const { reason } = joined.sender.signal;
    this.#joined.delete(joined);
    if (this.#joined.size === 0) {
      this.#onOver();
      this.#allLeft.abort(reason);
    }
    joined.reject(reason);
  }
}

interface Joined {
  readonly sender: Sender;
  readonly resolve: (result: ServiceResult<unknown>) => void;
  readonly reject: (reason: unknown) => void;
  readonly leave: () => void;
}

/** Copies an error for each caller: on its way out, a status and a code are written into its extensions. */
function copyOf(error: GraphQLError): GraphQLError {
  if (error instanceof OperatorError) return error.copy();
  const { message, path, originalError, extensions, cause } = error;
  const copy = new GraphQLError(message, {
    path: path ?? null,
    originalError: originalError ?? null,
    extensions: { ...extensions },
  });
  if (cause !== undefined) copy.cause = cause;
  return copy;
}
