import type { OutgoingRequest, Outcome, Send, Sender } from './request.ts';

/**
 * Sends equal concurrent queries once; what they share is the answer. Very long ones are not compared. An interactive
 * query does not wait for the same query of a drain. Queries that start after a mutation never join one that started
 * before it: the answer of that one may be older than what the mutation changed.
 */
export function shareQueries(next: Send): Send {
  const inFlight = {
    interactive: new Map<string, SharedQuery>(),
    drain: new Map<string, SharedQuery>(),
  };

  return (request, sender) => {
    // An aborted signal would not report any more that its caller leaves.
    sender.signal.throwIfAborted();
    if (request.kind === 'mutation') return mutate(request, sender);
    const queries = inFlight[sender.priority];
    const { body: key } = request;
    if (key.length > LONGEST_KEY) return next(request, sender);
    let shared = queries.get(key);
    if (!shared) {
      const begun = new SharedQuery(() => {
        if (queries.get(key) === begun) queries.delete(key);
      });
      queries.set(key, begun);
      begun.send(next, request, sender);
      shared = begun;
    }
    return shared.join(sender);
  };

  async function mutate(request: OutgoingRequest, sender: Sender): Promise<Outcome> {
    stopJoining();
    try {
      return await next(request, sender);
    } finally {
      // One that was sent meanwhile may have been answered before the mutation was.
      stopJoining();
    }
  }

  /** Those that have joined before still get their answer. */
  function stopJoining(): void {
    inFlight.interactive.clear();
    inFlight.drain.clear();
  }
}

/** Characters. V8 hashes longer strings by their length only, so that a map with many of them would be slow. */
const LONGEST_KEY = 16_383;

/**
 * One query, sent for all callers that join it. It is aborted when all of them have left. Once it is over it holds
 * nothing: a map that often grows and shrinks leaves old tables behind, which refer to their former values until the
 * next full collection.
 */
class SharedQuery {
  readonly #joined = new Set<Joined>();
  readonly #allLeft = new AbortController();
  readonly #onOver: () => void;

  /** @param onOver called when it can no longer be joined */
  constructor(onOver: () => void) {
    this.#onOver = onOver;
  }

  send(next: Send, request: OutgoingRequest, { priority, caller, cause }: Sender): void {
    const everybody: Sender = { priority, caller, cause, signal: this.#allLeft.signal };
    next(request, everybody).then(
      (outcome) => this.#settle(({ resolve }) => resolve(outcome)),
      (error: unknown) => this.#settle(({ reject }) => reject(error)),
    );
  }

  join(sender: Sender): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const joined: Joined = { sender, resolve, reject, leave: () => this.#leave(joined) };
    this.#joined.add(joined);
    sender.signal.addEventListener('abort', joined.leave);
    return promise;
  }

  #settle(deliver: (joined: Joined) => void): void {
    this.#onOver();
    for (const joined of this.#joined) {
      joined.sender.signal.removeEventListener('abort', joined.leave);
      deliver(joined);
    }
    this.#joined.clear();
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
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (reason: unknown) => void;
  readonly leave: () => void;
}
