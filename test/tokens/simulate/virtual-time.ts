import { nextTick } from 'node:process';
import type { Clock } from '../../../src/clock.ts';

/** Something that happens at its time, unless it is cancelled. */
interface Happening {
  readonly at: number;
  cancelled: boolean;
  readonly happen: () => void;
}

/**
 * Time that passes only from one event to the next. Events of one moment happen in the order in which they were
 * planned, so that the same plan gives the same history.
 */
export class VirtualTime {
  now = 0;
  /** The next one last. */
  readonly #planned: Happening[] = [];

  after(ms: number, happen: () => void): Happening {
    const happening = { at: this.now + Math.max(0, ms), cancelled: false, happen };
    const later = this.#planned.findIndex(({ at }) => at <= happening.at);
    this.#planned.splice(later < 0 ? this.#planned.length : later, 0, happening);
    return happening;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Lets time pass. Whatever an event woke does all that it can do at once before the next event. */
  async pass(ms: number, isOver: () => boolean = () => false): Promise<void> {
    const end = this.now + ms;
    await settled();
    while (!isOver()) {
      const next = this.#planned.at(-1);
      if (!next || next.at > end) break;
      this.#planned.pop();
      if (next.cancelled) continue;
      this.now = Math.max(this.now, next.at);
      next.happen();
      await settled();
    }
    if (!isOver()) this.now = Math.max(this.now, end);
  }

  /** Removes every event that is still planned. */
  end(): void {
    this.#planned.length = 0;
  }
}

/** Everything that runs in promises has run by then, as after a turn of the event loop, which costs much more. */
export function settled(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve));
}

/**
 * The sleeps of a process in virtual time.
 *
 * @param wake continues what slept, when the process runs
 */
export function sleepIn(time: VirtualTime, wake = (next: () => void) => next()): Clock['sleep'] {
  return (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      const abort = () => {
        timer.cancelled = true;
        reject(signal?.reason as Error);
      };
      const timer = time.after(Math.max(1, Math.ceil(ms)), () =>
        wake(() => {
          signal?.removeEventListener('abort', abort);
          resolve();
        }),
      );
      signal?.addEventListener('abort', abort);
    });
}

/** Numbers that look random and follow from a seed: for everything that a plan leaves open. */
export interface Chance {
  /** From 0 to 1, without 1. */
  number(): number;
  /** A whole number, both ends included. */
  between(least: number, most: number): number;
}

/** @param seed any whole number */
export function chanceFrom(seed: number): Chance {
  // The multiplier of Lehmer's generator: its first numbers differ little between similar seeds.
  let state = (Math.abs(seed) % 2_147_483_646) + 1;
  const number = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  number();
  return { number, between: (least, most) => least + Math.floor(number() * (most - least + 1)) };
}
