import { GraphQLError } from 'graphql';
import type { OutgoingRequest, UpstreamResult } from './request.ts';

export interface SharedQueries {
  /**
   * Joins the same query in flight, or sends this one. Resolves to the result's value, which all who joined share: it
   * must not be changed.
   */
  send(query: OutgoingRequest): Promise<unknown>;
  /** Queries sent later join none that is in flight now; those that have joined still get the result. */
  stopJoining(): void;
}

type SendQuery = (query: OutgoingRequest) => Promise<UpstreamResult>;

/** Sends queries that are the same at the same time once. */
export function shareQueries(send: SendQuery): SharedQueries {
  /** By body and key: an interactive query does not wait for the same query of a drain. */
  const inFlight = {
    interactive: new Map<string, Slot>(),
    drain: new Map<string, Slot>(),
  };

  return {
    send: (query) =>
      new Promise((resolve, reject) => {
        query.signal.throwIfAborted();
        const queries = inFlight[query.priority];
        const key = query.key ? query.body + query.key : query.body;
        let shared = queries.get(key)?.shared;
        if (!shared) {
          const slot: Slot = { shared: undefined };
          shared = slot.shared = sendShared(send, query, () => {
            if (queries.get(key) === slot) queries.delete(key);
            slot.shared = undefined;
          });
          queries.set(key, slot);
        }
        shared.join(query, resolve, reject);
      }),
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

interface SharedQuery {
  join(
    query: OutgoingRequest,
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
  ): void;
}

/**
 * Sends the query for everyone who joins it. It is aborted when all of them have left.
 *
 * @param onOver called when it cannot be joined any more
 */
function sendShared(send: SendQuery, first: OutgoingRequest, onOver: () => void): SharedQuery {
  const joined = new Set<Joined>();
  const allLeft = new AbortController();
  const onPressure = () => joined.forEach(({ query }) => query.onPressure?.());

  send({ ...first, onPressure, signal: allLeft.signal }).then(
    ({ value }) => settle(({ resolve }) => resolve(value)),
    (error) =>
      settle(({ reject }) => reject(error instanceof GraphQLError ? copyOf(error) : error)),
  );
  return {
    join: (query, resolve, reject) => {
      const one: Joined = { query, resolve, reject, leave: () => leave(one) };
      joined.add(one);
      query.signal.addEventListener('abort', one.leave);
    },
  };

  function settle(deliver: (one: Joined) => void): void {
    onOver();
    for (const one of joined) {
      one.query.signal.removeEventListener('abort', one.leave);
      deliver(one);
    }
  }

  function leave(one: Joined): void {
    const { reason } = one.query.signal;
    joined.delete(one);
    if (joined.size === 0) {
      onOver();
      allLeft.abort(reason);
    }
    one.reject(reason);
  }
}

interface Joined {
  readonly query: OutgoingRequest;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly leave: () => void;
}

/** Each caller gets an error of its own: on its way out, a status and a code are written into its extensions. */
function copyOf({ message, path, originalError, extensions, cause }: GraphQLError): GraphQLError {
  const copy = new GraphQLError(message, {
    path: path ?? null,
    originalError: originalError ?? null,
    extensions: { ...extensions },
  });
  if (cause !== undefined) copy.cause = cause;
  return copy;
}
