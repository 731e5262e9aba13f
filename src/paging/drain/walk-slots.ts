import type { Clock } from '../../clock.ts';
import { createFairQueue } from '../../fair-queue.ts';
import { refusal, WALK_LEFT } from '../failures.ts';
import type { WalkedPages } from '../walk.ts';

/**
 * Limits the walks under way. Waiting walks get slots in turn: one owner after the other, and one operation of an
 * owner after the other. How many wait, and for how long, is bounded.
 */
export interface WalkSlots {
  /**
   * @throws PagesRefused: RATE_LIMITED with `retryAfter`, when too many operations wait or no slot was free in time;
   *   the reason of the signal
   */
  take(turn: WalkTurn): Promise<WalkSlot>;
  readonly taken: number;
  readonly waiting: number;
}

export interface WalkTurn {
  /** Whose walk it is. An owner of a thousand walks waits as long as the others. */
  readonly owner: unknown;
  /** What the walk is for. All walks of an operation wait on, as long as one of them gets a slot now and then. */
  readonly operation: object;
  readonly signal: AbortSignal;
}

export interface WalkSlot {
  /** Lets other walks use the slot while this one has nothing to do. */
  rest(): void;
  /**
   * Returns a promise if another walk uses the slot now, and waits in turn then, without a time limit: a walk that has
   * begun is not refused.
   */
  resume(): Promise<void> | undefined;
  giveBack(): void;
}

/** Operations that may wait, for each slot. */
const WAITING_PER_SLOT = 100;
const FULL_RETRY_SECONDS = 5;
/** An operation that gets no slot within this time is refused. */
const PATIENCE_MS = 30_000;

interface Operation {
  readonly owner: unknown;
  readonly waiters: Set<Waiter>;
  /** Walks that have a slot now. */
  running: number;
  /** Whether it had a slot since it began to wait. */
  hadTurn: boolean;
  /** Runs while it waits; aborted when none of its walks waits any more. */
  patience: AbortController | undefined;
}

interface Waiter {
  readonly isNew: boolean;
  readonly serve: () => void;
  readonly refuse: (reason: unknown) => void;
}

interface Holder {
  readonly of: Operation;
  hasSlot: boolean;
}

/** @param max walks at a time */
export function createWalkSlots(max: number, clock: Pick<Clock, 'sleep'>): WalkSlots {
  const operations = new WeakMap<object, Operation>();
  /** Each operation waits once, however many of its walks wait. */
  const queue = createFairQueue<Operation>();
  const resting = new Set<Holder>();
  let taken = 0;

  return {
    get taken() {
      return taken;
    },
    get waiting() {
      return Array.from(queue).reduce((sum, { waiters }) => sum + waiters.size, 0);
    },
    take: async ({ owner, operation, signal }) => {
      const of = operations.get(operation) ?? createOperation(owner);
      operations.set(operation, of);
      await waitInTurn(of, signal, true);
      const holder: Holder = { of, hasSlot: true };
      return {
        rest: () => {
          if (!holder.hasSlot) return;
          resting.add(holder);
          serve();
        },
        resume: () => {
          resting.delete(holder);
          if (holder.hasSlot) return undefined;
          return resume(holder, signal);
        },
        giveBack: () => {
          resting.delete(holder);
          if (!holder.hasSlot) return;
          release(holder);
          serve();
        },
      };
    },
  };

  async function resume(holder: Holder, signal: AbortSignal): Promise<void> {
    await waitInTurn(holder.of, signal, false);
    holder.hasSlot = true;
  }

  async function waitInTurn(of: Operation, signal: AbortSignal, isNew: boolean): Promise<void> {
    signal.throwIfAborted();
    const isFirst = of.running === 0 && of.waiters.size === 0;
    if (isNew && isFirst && queue.isFull(of.owner, max * WAITING_PER_SLOT)) throw full();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = {
      isNew,
      serve: resolve,
      refuse: (reason) => {
        leave(of, waiter);
        reject(reason);
      },
    };
    of.waiters.add(waiter);
    queue.add(of.owner, of);
    const abort = () => waiter.refuse(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    serve();
    if (of.waiters.size > 0 && !of.patience) void losePatience(of);
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Refuses the waiting walks of an operation none of whose walks had a slot in time. */
  async function losePatience(of: Operation): Promise<void> {
    const { signal } = (of.patience = new AbortController());
    try {
      do {
        of.hadTurn = of.running > 0;
        await clock.sleep(PATIENCE_MS, signal);
      } while (of.hadTurn);
    } catch {
      return;
    }
    of.patience = undefined;
    for (const { isNew, refuse } of of.waiters) if (isNew) refuse(tooLate(max));
  }

  function leave(of: Operation, waiter: Waiter): void {
    of.waiters.delete(waiter);
    if (of.waiters.size > 0) return;
    of.patience?.abort();
    of.patience = undefined;
    queue.delete(of.owner, of);
  }

  function serve(): void {
    while (queue.size > 0 && (taken < max || takeFromResting())) {
      const [of] = queue as unknown as [Operation];
      const [next] = of.waiters as unknown as [Waiter];
      queue.take(of.owner, of);
      leave(of, next);
      if (of.waiters.size > 0) queue.add(of.owner, of);
      taken += 1;
      of.running += 1;
      of.hadTurn = true;
      next.serve();
    }
  }

  function takeFromResting(): boolean {
    const [holder] = resting;
    if (!holder) return false;
    resting.delete(holder);
    release(holder);
    return true;
  }

  function release(holder: Holder): void {
    holder.hasSlot = false;
    holder.of.running -= 1;
    taken -= 1;
  }
}

function createOperation(owner: unknown): Operation {
  return { owner, waiters: new Set(), running: 0, hadTurn: false, patience: undefined };
}

function full() {
  return refusal(
    'RATE_LIMITED',
    `Too many drains are waiting, many of them from this caller. Try again in ${FULL_RETRY_SECONDS} s.`,
    { retryAfter: FULL_RETRY_SECONDS },
  );
}

function tooLate(max: number) {
  const retryAfter = PATIENCE_MS / 1000;
  return refusal(
    'RATE_LIMITED',
    `The drain could not begin within ${retryAfter} s, because the gateway runs ${max} at a time and others took longer. ` +
      `Try again in ${retryAfter} s, or have the operator raise MAX_DRAINS.`,
    { retryAfter },
  );
}

/**
 * A walk that waits for a slot before its first request, and lets other walks use the slot while its consumer does
 * not read on.
 *
 * @param begin makes the walk, which calls `takeSlot` before each request; it returns a promise until there is a slot
 */
export async function* walkInTurn<R>(
  { slots, ...turn }: WalkTurn & { readonly slots: WalkSlots },
  begin: (takeSlot: () => Promise<unknown> | undefined) => WalkedPages<R>,
): WalkedPages<R> {
  const leaving = new AbortController();
  let taking: Promise<WalkSlot> | undefined;
  let slot: WalkSlot | undefined;
  const pages = begin(() => {
    if (slot) return undefined;
    taking ??= slots
      .take({ ...turn, signal: AbortSignal.any([turn.signal, leaving.signal]) })
      .then((taken) => (slot = taken));
    return taking;
  });
  try {
    for (;;) {
      const { done, value } = await pages.next();
      if (done) return;
      // A consumer that only collects records is back before this; one that waits for its client is not.
      const resting = setImmediate(() => slot?.rest());
      yield value;
      clearImmediate(resting);
      const waiting = slot?.resume();
      if (waiting) await waiting;
    }
  } finally {
    leaving.abort(WALK_LEFT);
    void taking?.then(
      (taken) => taken.giveBack(),
      () => {},
    );
    await pages.return();
  }
}
