import type { Clock } from './clock.ts';

/** Who waits. */
interface Turn {
  /** Owners take turns. */
  readonly owner: string;
  /** The groups of an owner take turns as well. Default: the entry alone. */
  readonly group?: object;
  /** Aborting it refuses the entry with the abort reason. */
  readonly signal: AbortSignal;
  /** The entry is refused after this time, ms. */
  readonly patience: number;
  /** Whether the entry is not refused then, but waits as long as it takes. Default: no. */
  readonly isPatient?: () => boolean;
}

interface Waiting {
  readonly owner: string;
  readonly group: object;
  /** Ends the wait and uses a turn: the owner's next entry goes behind those of all other owners. */
  begin(): void;
}

/**
 * A queue of entries that wait for a turn or a slot. Call `begin` when room becomes free. For several priorities, use
 * one queue each and serve them in order. A caller that finds room free does not need the queue.
 *
 * Owners take turns: an owner with a thousand entries delays the others no more than an owner with one.
 */
export class Queue {
  // Maps and sets keep insertion order: the first owner, its first group and that group's first entry have the next
  // turn.
  readonly #owners = new Map<string, Map<object, Set<Waiting>>>();
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

  /** Whether at least `max` entries wait, without groups, and this owner has a fair share of them or more. */
  isFull(owner: string, max: number): boolean {
    const groups = this.#owners.get(owner);
    const owners = this.#owners.size + (groups ? 0 : 1);
    return this.#size >= max && (groups?.size ?? 0) >= max / owners;
  }

  /**
   * Resolves when the entry is begun.
   *
   * @throws the abort reason of the signal, and `tooLate`
   */
  wait({ owner, group, signal, patience, isPatient = () => false }: Turn): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const end = (hadTurn: boolean) => {
      this.#remove(waiting, hadTurn);
      signal.removeEventListener('abort', leave);
      stopTimer();
    };
    const waiting: Waiting = {
      owner,
      group: group ?? promise,
      begin: () => {
        end(true);
        resolve();
      },
    };
    // The owner keeps its place.
    const refuse = (reason: unknown) => {
      end(false);
      reject(reason);
    };
    const leave = () => refuse(signal.reason);
    this.#add(waiting);
    signal.addEventListener('abort', leave);
    const stopTimer = this.#clock.timer(patience, () => {
      if (!isPatient()) refuse(this.#tooLate());
    });
    return promise;
  }

  /** Begins the entry that has the next turn. @returns whether there was one */
  begin(): boolean {
    for (const groups of this.#owners.values()) {
      for (const entries of groups.values()) {
        for (const next of entries) {
          next.begin();
          return true;
        }
      }
    }
    return false;
  }

  #add(waiting: Waiting): void {
    const { owner, group } = waiting;
    const groups = this.#owners.get(owner) ?? new Map<object, Set<Waiting>>();
    const entries = groups.get(group) ?? new Set();
    this.#owners.set(owner, groups.set(group, entries.add(waiting)));
    this.#size += 1;
  }

  #remove(waiting: Waiting, hadTurn: boolean): void {
    const { owner, group } = waiting;
    const groups = this.#owners.get(owner)!;
    const entries = groups.get(group)!;
    entries.delete(waiting);
    this.#size -= 1;
    moveBehind(groups, group, entries, hadTurn);
    moveBehind(this.#owners, owner, groups, hadTurn);
  }
}

/** Removes a part that became empty. Moves any other part to the end if it used its turn. */
function moveBehind<K, P extends { readonly size: number }>(
  parts: Map<K, P>,
  key: K,
  part: P,
  hadTurn: boolean,
): void {
  if (hadTurn || part.size === 0) parts.delete(key);
  if (hadTurn && part.size > 0) parts.set(key, part);
}

/** Limits the number of tasks that run at the same time. */
export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Runs the work: at once if a slot is free, otherwise when it is its turn. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      return await work();
    } finally {
      const begin = this.#waiting.shift();
      if (begin) begin();
      else this.#free += 1;
    }
  }
}
