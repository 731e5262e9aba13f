import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { Queue } from '../queue.ts';
import type { WalkedPages } from './walk.ts';

/** Who needs a walk. */
export interface WalkTurn {
  /** Callers take turns: one with a thousand walks waits as long as the others. */
  readonly caller: string;
  /** Its walks wait as long as it takes once one of them has had a slot. */
  readonly operation: object;
  readonly signal: AbortSignal;
}

/** How long an operation may wait for its first slot, ms. */
const PATIENCE_MS = 30_000;

/** Limits the number of current walks. The others wait, in the order of turns. */
export class WalkSlots {
  readonly #max: number;
  readonly #queue: Queue;
  /** Operations that had a slot: what they have read would be lost, so their other walks wait as long as it takes. */
  readonly #begun = new WeakSet<object>();
  #taken = 0;

  /** @param max walks at a time */
  constructor(max: number, clock: Pick<Clock, 'timer'>) {
    this.#max = max;
    this.#queue = new Queue(clock, () => tooLate(max));
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
   * @throws RATE_LIMITED with `retryAfter`, if the operation got no slot in time; the abort reason of the signal
   */
  async take({ caller: owner, operation, signal }: WalkTurn): Promise<void> {
    signal.throwIfAborted();
    if (this.#taken < this.#max) this.#taken += 1;
    else {
      const isPatient = () => this.#begun.has(operation);
      await this.#queue.wait({ owner, signal, patience: PATIENCE_MS, isPatient });
    }
    this.#begun.add(operation);
  }

  giveBack(): void {
    // The next one takes the slot over.
    if (!this.#queue.begin()) this.#taken -= 1;
  }
}

/**
 * Begins a walk when a slot is free, and lets others use the slot while the reader does not read on.
 *
 * @param signal of all its readers. Default: that of the turn
 */
export async function* walkInTurn<R>(
  slots: WalkSlots,
  { caller, operation, signal: own }: WalkTurn,
  begin: () => WalkedPages<R>,
  signal = own,
): WalkedPages<R> {
  const turn = { caller, operation, signal };
  await slots.take(turn);
  let hasSlot = true;
  const rest = () => {
    hasSlot = false;
    slots.giveBack();
  };
  let resting: NodeJS.Immediate | undefined;
  try {
    for await (const page of begin()) {
      // A reader that only collects records is back before this, even if it lets others be served in between; one that
      // waits for its client is not. Otherwise all drains would be under way at once, each with the pages it has read.
      resting = setImmediate(() => (resting = setImmediate(rest)));
      yield page;
      clearImmediate(resting);
      if (!hasSlot) await slots.take(turn);
      hasSlot = true;
    }
  } finally {
    clearImmediate(resting);
    if (hasSlot) slots.giveBack();
  }
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
