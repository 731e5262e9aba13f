import { setImmediate } from './turns.ts';

/** Something that happens at its time, unless it is cancelled. */
export interface Happening {
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
    let low = 0;
    let high = this.#planned.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#planned[middle]!.at > happening.at) low = middle + 1;
      else high = middle;
    }
    this.#planned.splice(low, 0, happening);
    return happening;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Lets time pass. Whatever an event woke does all that it can do at once before the next event. */
  async pass(ms: number, isOver: () => boolean = () => false): Promise<void> {
    const end = this.now + ms;
    await setImmediate();
    while (!isOver()) {
      const next = this.#planned.at(-1);
      if (!next || next.at > end) break;
      this.#planned.pop();
      if (next.cancelled) continue;
      this.now = Math.max(this.now, next.at);
      next.happen();
      await setImmediate();
    }
    if (!isOver()) this.now = Math.max(this.now, end);
  }

  /** Removes every event that is still planned. */
  end(): void {
    this.#planned.length = 0;
  }
}
