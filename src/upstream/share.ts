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
      const { priority, caller, cause } = sender;
      const begun = new SharedQuery(
        (signal) => next(request, { priority, caller, cause, signal }),
        () => {
          if (queries.get(key) === begun) queries.delete(key);
        },
      );
      queries.set(key, begun);
      shared = begun;
    }
    return shared.join(sender.signal);
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
  readonly #allLeft = new AbortController();
  readonly #onOver: () => void;
  #outcome: Promise<Outcome> | undefined;
  #waiting = 0;

  /** @param onOver called when it can no longer be joined */
  constructor(send: (signal: AbortSignal) => Promise<Outcome>, onOver: () => void) {
    this.#onOver = onOver;
    this.#outcome = send(this.#allLeft.signal);
  }

  join(signal: AbortSignal): Promise<Outcome> {
    this.#waiting += 1;
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting -= 1;
        if (this.#waiting === 0) {
          this.#end();
          this.#allLeft.abort(signal.reason);
        }
        reject(signal.reason as Error);
      };
      const over =
        <T>(deliver: (value: T) => void) =>
        (value: T) => {
          signal.removeEventListener('abort', leave);
          this.#end();
          deliver(value);
        };
      signal.addEventListener('abort', leave);
      this.#outcome!.then(over(resolve), over(reject));
    });
  }

  #end(): void {
    this.#outcome = undefined;
    this.#onOver();
  }
}
