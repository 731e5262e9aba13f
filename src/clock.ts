import { uptime } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** The time, passed in so that tests can control it. All values are milliseconds. */
export interface Clock {
  /** Wall time. It can jump, so it is used only across restarts. */
  now(): number;
  /** Time since boot. Never jumps back, and includes suspends, unlike `performance.now()`. */
  elapsed(): number;
  /** Rejects when the signal is aborted. Does not keep the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `end` after this time, unless the returned function is called before. Cheaper than `sleep`. */
  timer(ms: number, end: () => void): () => void;
}

/** The sources of the system's time. All values are milliseconds. */
interface TimeSources {
  readonly wall: () => number;
  /** Cheap and exact. Stops while the machine is suspended. */
  readonly steady: () => number;
  /** Includes suspends. Rounded down, to 10 ms or more; reading it costs several microseconds. */
  readonly sinceBoot: () => number;
}

/** The time on the steady source after which the time since boot is read again. */
const READ_AGAIN_MS = 10;
/**
 * A larger difference between the wall clock and the steady source means that the machine was suspended, or that the
 * wall clock was set.
 */
const APART_MS = 5;

export function createClock({ wall, steady, sinceBoot }: TimeSources): Clock {
  let known = { elapsed: sinceBoot(), steady: steady(), wall: wall() };
  return {
    now: wall,
    elapsed: () => {
      const awake = steady() - known.steady;
      const elapsed = known.elapsed + awake;
      // The wall clock only triggers the reading: without it, a suspend would be noticed up to 10 ms later.
      const isApart = Math.abs(wall() - known.wall - awake) >= APART_MS;
      if (awake < READ_AGAIN_MS && !isApart) return elapsed;
      // Neither value is ahead of the real time: `sinceBoot` is rounded down, and `elapsed` began with such a reading
      // and then missed suspends. So the later value is more accurate, and results never go back.
      known = {
        elapsed: Math.max(elapsed, sinceBoot()),
        steady: known.steady + awake,
        wall: wall(),
      };
      return known.elapsed;
    },
    sleep: (ms, signal) => delay(ms, undefined, { ref: false, ...(signal && { signal }) }),
    timer: (ms, end) => {
      const timer = setTimeout(end, ms);
      return () => clearTimeout(timer);
    },
  };
}

export const systemClock: Clock = createClock({
  wall: Date.now,
  steady: () => performance.now(),
  sinceBoot: () => uptime() * 1000,
});
