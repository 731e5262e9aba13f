import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../src/clock.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Sleeps up to this length poll for something, so they end by themselves. */
const NAP_MS = 100;

interface Timer {
  readonly at: number;
  readonly end: () => void;
}

/** A clock that advances only when a test advances it. */
export class ManualClock implements Clock {
  #elapsed = DAY;
  readonly #timers = new Set<Timer>();

  readonly now = (): number => Date.UTC(2026, 0, 1) + this.#elapsed;
  readonly elapsed = (): number => this.#elapsed;

  readonly sleep = async (exactMs: number, signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted();
    // Rounded as timers round: with fractions a sleeper might never reach its time.
    const ms = Math.max(1, Math.ceil(exactMs));
    if (ms <= NAP_MS) {
      this.jump(ms);
      await setImmediate();
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = this.timer(ms, resolve);
    const abort = () => reject(signal?.reason as Error);
    signal?.addEventListener('abort', abort);
    try {
      await promise;
    } finally {
      signal?.removeEventListener('abort', abort);
      stop();
    }
  };

  readonly timer = (ms: number, end: () => void): (() => void) => {
    const timer = { at: this.#elapsed + ms, end };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  /** Advances at once, as after a suspend: sleepers that are due wake up late. */
  jump(ms: number): void {
    this.#elapsed += ms;
    for (const timer of this.#timers) {
      if (timer.at > this.#elapsed) continue;
      this.#timers.delete(timer);
      timer.end();
    }
  }
}
