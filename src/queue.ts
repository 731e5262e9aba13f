import type { Clock } from './clock.ts';

/** Options of a wait. */
interface WaitOptions {
  /** Owners take turns. Default: all entries have the same owner. */
  readonly owner?: unknown;
  /** The groups of an owner take turns as well. Default: the entry alone. */
  readonly group?: unknown;
  /** Aborting it refuses the entry with the abort reason. */
  readonly signal?: AbortSignal | undefined;
  /** The time, by `clock.elapsed`, at which the entry is refused. It may move later during the wait. Default: never. */
  readonly until?: () => number;
}

interface Waiting<E> extends WaitOptions {
  readonly entry: E;
  /** Ends the wait and uses a turn: the owner's next entry goes behind those of all other owners. */
  begin(): void;
  /** Ends the wait without using a turn: the owner keeps its place. */
  refuse(reason: unknown): void;
}

interface Patience {
  readonly clock: Pick<Clock, 'elapsed' | 'sleep'>;
  /** Makes the error for an entry that waited too long. */
  readonly tooLate: () => Error;
}

/**
 * A queue of entries that wait for a turn or a slot. When room becomes free, iterate over the queue, which is in the
 * order of turns, and begin the entries that fit. For several priorities, use one queue each and serve them in
 * order. A caller that finds room free does not need the queue.
 *
 * Owners take turns: an owner with a thousand entries delays the others no more than an owner with one.
 */
export class Queue<E> implements Iterable<Waiting<E>> {
  // Maps and sets keep insertion order: the first owner, its first group and that group's first entry have the next
  // turn.
  readonly #owners = new Map<unknown, Map<unknown, Set<Waiting<E>>>>();
  readonly #patience: Patience;
  #size = 0;
  /** The running timer: when it fires, by `clock.elapsed`, and its restart. Undefined if no timer is running. */
  #timer: { readonly until: number; readonly restart: AbortController } | undefined;

  constructor(patience: Patience) {
    this.#patience = patience;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether at least `max` entries wait, without groups, and this owner has a fair share of them or more. */
  isFull(owner: unknown, max: number): boolean {
    const groups = this.#owners.get(owner);
    const owners = this.#owners.size + (groups ? 0 : 1);
    return this.#size >= max && (groups?.size ?? 0) >= max / owners;
  }

  /**
   * Resolves when the entry is begun.
   *
   * @throws the abort reason of the signal, and `tooLate`
   */
  wait(entry: E, options: WaitOptions = {}): Promise<void> {
    const { signal, until } = options;
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const end = (hadTurn: boolean) => {
      this.#remove(waiting, hadTurn);
      signal?.removeEventListener('abort', leave);
    };
    const leave = () => waiting.refuse(signal?.reason);
    const waiting: Waiting<E> = {
      ...options,
      entry,
      begin: () => {
        end(true);
        resolve();
      },
      refuse: (reason) => {
        end(false);
        reject(reason);
      },
    };
    this.#add(waiting);
    signal?.addEventListener('abort', leave);
    if (until && !this.#timer) void this.#refuseLate();
    else if (until && until() < this.#timer!.until) this.#timer!.restart.abort(RESTARTED);
    return promise;
  }

  *[Symbol.iterator](): Generator<Waiting<E>, void, undefined> {
    // An owner that used its turn moves behind the others, so the iteration reaches it again.
    for (const groups of this.#owners.values()) yield* untilTurn(groups);
  }

  #add(waiting: Waiting<E>): void {
    const { owner, group = waiting } = waiting;
    const groups = this.#owners.get(owner) ?? new Map<unknown, Set<Waiting<E>>>();
    const entries = groups.get(group) ?? new Set();
    this.#owners.set(owner, groups.set(group, entries.add(waiting)));
    this.#size += 1;
  }

  #remove(waiting: Waiting<E>, hadTurn: boolean): void {
    const { owner, group = waiting } = waiting;
    const groups = this.#owners.get(owner)!;
    const entries = groups.get(group)!;
    entries.delete(waiting);
    this.#size -= 1;
    moveBehind(groups, group, entries, hadTurn);
    moveBehind(this.#owners, owner, groups, hadTurn);
    if (this.#size === 0) this.#timer?.restart.abort(RESTARTED);
  }

  /** Uses one timer for all entries: most begin soon, and stopping a timer for each would cost more than the wait. */
  async #refuseLate(): Promise<void> {
    const { clock, tooLate } = this.#patience;
    for (;;) {
      const now = clock.elapsed();
      const late: Waiting<E>[] = [];
      let next = Infinity;
      for (const waiting of this) {
        const until = waiting.until?.() ?? Infinity;
        if (until <= now) late.push(waiting);
        else next = Math.min(next, until);
      }
      for (const waiting of late) waiting.refuse(tooLate());
      if (next === Infinity) break;
      this.#timer = { until: next, restart: new AbortController() };
      await clock.sleep(next - now, this.#timer.restart.signal).catch(() => {});
    }
    this.#timer = undefined;
  }
}

/** Created once: a new exception, with its stack trace, would cost more than the wait. */
const RESTARTED = new DOMException(
  'The timer is set to an earlier time, or not needed.',
  'AbortError',
);

function* untilTurn<W>(groups: ReadonlyMap<unknown, ReadonlySet<W>>) {
  for (const entries of groups.values()) {
    for (const waiting of entries) {
      yield waiting;
      if (!entries.has(waiting)) return;
    }
  }
}

/** Removes a part that became empty. Moves any other part to the end if it used its turn. */
function moveBehind<P extends { readonly size: number }>(
  parts: Map<unknown, P>,
  key: unknown,
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
