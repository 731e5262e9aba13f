import { uptime } from 'node:os';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';

/** Time, passed in so that tests can bend it. All values are milliseconds. */
export interface Clock {
  /** Wall time. It can jump; it is used across restarts only. */
  now(): number;
  /** Time since boot. Never jumps back, and counts suspend, which `performance.now()` does not. */
  elapsed(): number;
  /** Rejects when the signal is aborted. Does not keep the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** What the system's time is read from. All values are milliseconds. */
interface TimeSources {
  readonly wall: () => number;
  /** Cheap and exact. Stands still while the machine is suspended. */
  readonly steady: () => number;
  /** Counts suspend. Rounded down, to 10 ms or more; a reading costs several microseconds. */
  readonly sinceBoot: () => number;
}

/** After this time on the steady source, the time since boot is read again. */
const READ_AGAIN_MS = 10;
/**
 * A larger difference between the wall clock and the steady one means a suspend, or that somebody set the wall clock.
 */
const APART_MS = 5;

export function createClock({ wall, steady, sinceBoot }: TimeSources): Clock {
  let known = { elapsed: sinceBoot(), steady: steady(), wall: wall() };
  return {
    now: wall,
    elapsed: () => {
      const awake = steady() - known.steady;
      const elapsed = known.elapsed + awake;
      // The wall clock is only a hint to look: without it a suspend would be seen up to 10 ms later.
      const isApart = Math.abs(wall() - known.wall - awake) >= APART_MS;
      if (awake < READ_AGAIN_MS && !isApart) return elapsed;
      // Neither is ever ahead of the truth: the one was rounded down, the other began with such a reading and then
      // missed suspends. So the later of the two is nearer, and no result is before the last.
      known = {
        elapsed: Math.max(elapsed, sinceBoot()),
        steady: known.steady + awake,
        wall: wall(),
      };
      return known.elapsed;
    },
    sleep: (ms, signal) => delay(ms, undefined, { ref: false, ...(signal && { signal }) }),
  };
}

export const systemClock: Clock = createClock({
  wall: Date.now,
  steady: () => performance.now(),
  sinceBoot: () => uptime() * 1000,
});

/** There was no answer in time. The outcome of the call is unknown. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
}

const STEP_MS = 250;

/** Made once: a new one for each call, with its stack, costs more than the call of a store. */
const SETTLED = new DOMException('The work has settled.', 'AbortError');

/**
 * Returns the result of the work, unless that takes too long. It is waited for in steps, so that a time in which this
 * process or the machine stood still counts as one step: on waking, an answer may be there that nobody could take.
 *
 * @param limit ms; asked again after each step
 * @param whose the one that has to answer, for the error
 * @throws NoAnswerError when the limit is exceeded; the work itself continues
 */
export function within<T>(
  clock: Clock,
  work: Promise<T>,
  limit: () => number,
  responder: string,
): Promise<T> {
  const settled = new AbortController();
  const end = () => settled.abort(SETTLED);
  work.then(end, end);
  return Promise.race([work, givenUp()]);

  async function givenUp(): Promise<never> {
    // Most calls are settled by then, and need no timer.
    await setImmediate();
    settled.signal.throwIfAborted();
    for (let waited = 0; waited < limit(); waited += STEP_MS) {
      await clock.sleep(STEP_MS, settled.signal);
    }
    throw new NoAnswerError(`no answer of ${responder} within ${limit() / 1000} s`);
  }
}
