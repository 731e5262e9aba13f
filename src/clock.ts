import { uptime } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** Time, passed in so that tests can bend it. All values are milliseconds. */
export interface Clock {
  /** Wall time. It can jump; it is used across restarts only. */
  now(): number;
  /** Time since boot. Never jumps, and counts suspend, which `performance.now()` does not. */
  elapsed(): number;
  /** Rejects when the signal is aborted. Does not keep the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: Date.now,
  elapsed: () => uptime() * 1000,
  sleep: (ms, signal) => delay(ms, undefined, { ref: false, ...(signal && { signal }) }),
};
