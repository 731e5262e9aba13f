import type { Clock } from './clock.ts';

/** Who waits. */
interface Turn {
  /** Owners take turns. */
  readonly owner: string;
  /** Aborting it refuses the entry with the abort reason. */
  readonly signal: AbortSignal;
  /** The entry is refused after this time, ms. */
  readonly patience: number;
  /** Whether the entry is not refused then, but waits as long as it takes. Default: no. */
  readonly isPatient?: () => boolean;
}

/**
 * A queue of entries that wait for a turn or a slot. Call `begin` when room becomes free. For several priorities, use
 * one queue each and serve them in order. A caller that finds room free does not need the queue.
 *
 * Owners take turns: an owner with a thousand entries delays the others no more than an owner with one.
 */
export class Queue {
  /** What begins each entry. Maps and sets keep insertion order: the first entry of the first owner has the next turn. */
  readonly #owners = new Map<string, Set<() => void>>();
  readonly #clock: Pick<Clock, 'timer'>;
  readonly #tooLate: () => Error;
  #size = 0;

  /** @param tooLate makes the error for an entry that waited too long */
  constructor(clock: Pick<Clock, 'timer'>, tooLate: () => Error) {
    this.#clock = clock;
    this.#tooLate = tooLate;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether at least `max` entries wait, and this owner has a fair share of them or more. */
  isFull(owner: string, max: number): boolean {
    const entries = this.#owners.get(owner);
    const owners = this.#owners.size + (entries ? 0 : 1);
    return this.#size >= max && (entries?.size ?? 0) >= max / owners;
  }

  /**
   * Resolves when the entry is begun.
   *
   * @throws the abort reason of the signal, and `tooLate`
   */
  wait({ owner, signal, patience, isPatient = () => false }: Turn): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const end = () => {
      this.#remove(owner, begin);
      signal.removeEventListener('abort', leave);
      stopTimer();
    };
    const begin = () => {
      end();
      resolve();
    };
    const refuse = (reason: unknown) => {
      end();
      reject(reason);
    };
    const leave = () => refuse(signal.reason);
    this.#add(owner, begin);
    signal.addEventListener('abort', leave);
    const stopTimer = this.#clock.timer(patience, () => {
      if (!isPatient()) refuse(this.#tooLate());
    });
    return promise;
  }

  /** Begins the entry that has the next turn. @returns whether there was one */
  begin(): boolean {
    for (const [owner, entries] of this.#owners) {
      for (const begin of entries) {
        begin();
        // Behind all other owners. One whose entry leaves keeps its place.
        if (this.#owners.delete(owner)) this.#owners.set(owner, entries);
        return true;
      }
    }
    return false;
  }

  #add(owner: string, begin: () => void): void {
    const entries = this.#owners.get(owner) ?? new Set();
    this.#owners.set(owner, entries.add(begin));
    this.#size += 1;
  }

  #remove(owner: string, begin: () => void): void {
    const entries = this.#owners.get(owner)!;
    entries.delete(begin);
    if (entries.size === 0) this.#owners.delete(owner);
    this.#size -= 1;
  }
}

export type Limited = ReturnType<typeof limitedTo>;

/** Makes a function that runs tasks, so many at the same time: a task begins at once, or when it is its turn. */
export function limitedTo(slots: number) {
  const waiting: (() => void)[] = [];
  let free = slots;
  return async <T>(task: () => Promise<T>): Promise<T> => {
    if (free > 0) free -= 1;
    else await new Promise<void>((begin) => waiting.push(begin));
    try {
      return await task();
    } finally {
      const begin = waiting.shift();
      if (begin) begin();
      else free += 1;
    }
  };
}
