import { setTimeout as delay } from 'node:timers/promises';

/** The time, passed in so that tests can control it. All values are milliseconds. */
export interface Clock {
  /** Wall time. It can jump. */
  now(): number;
  /** Never jumps. Stops while the machine is suspended. */
  elapsed(): number;
  /**
   * Rejects when the signal is aborted.
   *
   * @param keepsAlive false: the process may end before, if it does nothing else. Default: true
   */
  sleep(ms: number, signal?: AbortSignal, keepsAlive?: boolean): Promise<void>;
  /** Calls `end` after this time, unless the returned function is called before. Cheaper than `sleep`. */
  timer(ms: number, end: () => void): () => void;
}

export const systemClock: Clock = {
  now: Date.now,
  elapsed: () => performance.now(),
  sleep: (ms, signal, keepsAlive = true) =>
    delay(ms, undefined, { ref: keepsAlive, ...(signal && { signal }) }),
  timer: (ms, end) => {
    const timer = setTimeout(end, ms);
    return () => clearTimeout(timer);
  },
};
