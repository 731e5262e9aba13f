/** Lets so many at a time do something; the others wait for their turn, first come, first served. */
export interface Turns {
  /**
   * Waits for a turn and gives the function that ends it, to be called once.
   *
   * @throws the signal's reason, when it is aborted before the turn has come
   */
  take(signal?: AbortSignal): Promise<() => void>;
}

export function createTurns(limit: number): Turns {
  const waiting = new Set<() => void>();
  let free = limit;

  const end = () => {
    const [next] = waiting;
    if (!next) free += 1;
    else {
      waiting.delete(next);
      next();
    }
  };

  return {
    take: async (signal) => {
      signal?.throwIfAborted();
      if (free > 0) free -= 1;
      else await turn(signal);
      return end;
    },
  };

  async function turn(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      // When it was given the turn at this very moment, it has to take it and end it.
      if (waiting.delete(resolve)) reject(signal?.reason);
    };
    waiting.add(resolve);
    signal?.addEventListener('abort', leave, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener('abort', leave);
    }
  }
}
