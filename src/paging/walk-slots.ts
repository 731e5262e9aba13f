import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { Queue } from '../queue.ts';
import type { WalkedPages } from './walk.ts';

/** Who needs a walk. */
export interface WalkTurn {
  /** Callers take turns: one with a thousand walks waits as long as the others. */
  readonly caller: string;
  /** The operation. All its walks keep waiting as long as one of them gets a slot now and then. */
  readonly operation: object;
  readonly signal: AbortSignal;
}

/** The number of operations that may wait, per slot. */
const WAITING_PER_SLOT = 100;
const FULL_RETRY_SECONDS = 5;
/** How long an operation may wait for a slot, ms. */
const PATIENCE_MS = 30_000;

/** The walks of one operation. */
interface Operation {
  running: number;
  /** When one of them last gave its slot back, by `clock.elapsed()`. */
  since: number;
}

/** Limits the number of current walks. The others wait, in the order of turns, and are refused if that takes too long. */
export class WalkSlots {
  readonly #max: number;
  readonly #clock: Clock;
  readonly #queue: Queue<Operation>;
  readonly #operations = new WeakMap<object, Operation>();
  #taken = 0;

  /** @param max walks at a time */
  constructor(max: number, clock: Clock) {
    this.#max = max;
    this.#clock = clock;
    this.#queue = new Queue({ clock, tooLate: () => tooLate(max) });
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * Waits for a slot.
   *
   * @param hasBegun a walk that has begun waits without a time limit
   * @returns gives the slot back
   * @throws RATE_LIMITED with `retryAfter`, if too many operations wait or no slot was free in time; the
   *   abort reason of the signal
   */
  async take(turn: WalkTurn, { hasBegun = false } = {}): Promise<() => void> {
    const { caller: owner, operation: group, signal } = turn;
    signal.throwIfAborted();
    const operation = this.#operations.get(group) ?? { running: 0, since: 0 };
    this.#operations.set(group, operation);
    if (this.#taken < this.#max) this.#begin(operation);
    else if (hasBegun) await this.#queue.wait(operation, { owner, group, signal });
    else {
      const isFirst = operation.running === 0 && !this.#queue.has(owner, group);
      if (isFirst && this.#queue.isFull(owner, this.#max * WAITING_PER_SLOT)) throw full();
      const since = this.#clock.elapsed();
      const until = () =>
        PATIENCE_MS +
        (operation.running > 0 ? this.#clock.elapsed() : Math.max(since, operation.since));
      await this.#queue.wait(operation, { owner, group, signal, until });
    }
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#giveBack(operation);
    };
  }

  #begin(operation: Operation): void {
    this.#taken += 1;
    operation.running += 1;
  }

  #giveBack(operation: Operation): void {
    this.#taken -= 1;
    operation.running -= 1;
    operation.since = this.#clock.elapsed();
    for (const next of this.#queue) {
      if (this.#taken >= this.#max) return;
      this.#begin(next.entry);
      next.begin();
    }
  }
}

/** Begins a walk when a slot is free, and lets others use the slot while the reader does not read on. */
export async function* walkInTurn<R>(
  slots: WalkSlots,
  turn: WalkTurn,
  begin: () => WalkedPages<R>,
): WalkedPages<R> {
  let giveBack = await slots.take(turn);
  const pages = begin();
  try {
    for (;;) {
      const { done, value } = await pages.next();
      if (done) return;
      let hasSlot = true;
      const rest = () => {
        hasSlot = false;
        giveBack();
      };
      // A reader that only collects records is back before this, even if it lets others be served in between; one that
      // waits for its client is not. Otherwise all drains would be under way at once, each with the pages it has read.
      let resting = setImmediate(() => (resting = setImmediate(rest)));
      yield value;
      clearImmediate(resting);
      if (!hasSlot) giveBack = await slots.take(turn, { hasBegun: true });
    }
  } finally {
    giveBack();
    await pages.return();
  }
}

function full(): Error {
  return codedError(
    'RATE_LIMITED',
    `Too many drains are waiting, many of them from this caller. Try again in ${FULL_RETRY_SECONDS} s.`,
    { extensions: { retryAfter: FULL_RETRY_SECONDS, limit: 'MAX_DRAINS' } },
  );
}

function tooLate(max: number): Error {
  const retryAfter = PATIENCE_MS / 1000;
  return codedError(
    'RATE_LIMITED',
    `The drain could not begin within ${retryAfter} s, because the gateway runs ${max} at a time and others took longer. ` +
      `Try again in ${retryAfter} s, or have the operator raise MAX_DRAINS.`,
    { extensions: { retryAfter, limit: 'MAX_DRAINS' } },
  );
}
