import { setTimeout as delay } from 'node:timers/promises';

/** The time, passed in so that tests can control it. All values are milliseconds. */
export interface Clock {
  /** Wall time. It can jump. */
  now(): number;
  /** Never jumps. Stops while the machine is suspended. */
  elapsed(): number;
  /** Rejects when the signal is aborted. Does not keep the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `end` after this time, unless the returned function is called before. Cheaper than `sleep`. */
  timer(ms: number, end: () => void): () => void;
}

export const systemClock: Clock = {
  now: Date.now,
  elapsed: () => performance.now(),
  sleep: (ms, signal) => delay(ms, undefined, { ref: false, ...(signal && { signal }) }),
  timer: (ms, end) => {
    const timer = setTimeout(end, ms);
    return () => clearTimeout(timer);
  },
};
