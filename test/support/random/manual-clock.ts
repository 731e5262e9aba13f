import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../src/clock.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Sleeps up to this length poll for something, so they end by themselves. */
const NAP_MS = 100;

interface Sleeper {
  at: number;
  wake: () => void;
}

/** A clock that advances only when a test advances it. */
export class ManualClock implements Clock {
  #elapsed = DAY;
  #wallStart = Date.UTC(2026, 0, 1);
  readonly #sleepers = new Set<Sleeper>();
  readonly #timers = new Set<Sleeper>();
  #waiting: (() => void)[] = [];

  readonly now = (): number => this.#wallStart + this.#elapsed;
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
    const sleeper = { at: this.#elapsed + ms, wake: resolve };
    const abort = () => reject(signal?.reason as Error);
    signal?.addEventListener('abort', abort);
    this.#sleepers.add(sleeper);
    for (const resume of this.#waiting.splice(0)) resume();
    try {
      await promise;
    } finally {
      signal?.removeEventListener('abort', abort);
      this.#sleepers.delete(sleeper);
    }
  };

  readonly timer = (ms: number, end: () => void): (() => void) => {
    const timer = { at: this.#elapsed + ms, wake: end };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  /** Sets only the wall clock, as an administrator or NTP does. */
  setWall(ms: number): void {
    this.#wallStart += ms;
  }

  /** Advances at once, as after a suspend: sleepers that are due wake up late. */
  jump(ms: number): void {
    this.#elapsed += ms;
    for (const sleepers of [this.#sleepers, this.#timers])
      for (const each of sleepers) if (each.at <= this.#elapsed) wake(each, sleepers);
  }

  /** Wakes one sleeper after the other; each finishes its work, with real sockets, before the time advances. */
  async pass(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    for (;;) {
      await this.asleep();
      const [next] = [...this.#sleepers].toSorted((left, right) => left.at - right.at);
      if (!next || next.at > end) break;
      this.#elapsed = Math.max(this.#elapsed, next.at);
      wake(next, this.#sleepers);
      await setImmediate();
    }
    this.jump(Math.max(0, end - this.#elapsed));
  }

  /** Waits until something sleeps: then nothing is left to do for the tokens. */
  async asleep(): Promise<void> {
    await setImmediate();
    if (this.#sleepers.size === 0)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

function wake(sleeper: Sleeper, sleepers: Set<Sleeper>): void {
  sleepers.delete(sleeper);
  sleeper.wake();
}
