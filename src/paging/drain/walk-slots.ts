import type { Clock } from '../../clock.ts';
import { refusal, WALK_LEFT } from '../failures.ts';
import type { WalkedPage } from '../walk.ts';

/**
 * So many walks at a time. Who has to wait is served in turn: one owner after the other, and of one owner one
 * operation after the other. How many wait, and how long, is bounded.
 */
export interface WalkSlots {
  /**
   * @throws PagesRefused: RATE_LIMITED with `retryAfter`, when too many operations wait or no turn came in time; and the
   *   abort reason of the signal
   */
  take(turn: WalkTurn): Promise<WalkSlot>;
  readonly taken: number;
  readonly waiting: number;
}

export interface WalkTurn {
  /** Whose walk it is: one with a thousand walks waits no less than the others. */
  readonly owner: unknown;
  /** What it is for: the walks of one operation wait together, and one that has a turn is patient for the others. */
  readonly operation: object;
  readonly signal: AbortSignal;
}

export interface WalkSlot {
  /** Others may have it while this walk has nothing to do. */
  rest(): void;
  /** Goes on; waits in turn when somebody else has it now, however long: what has begun is not refused. */
  resume(): Promise<void>;
  giveBack(): void;
}

/** Operations that may wait, for each walk that may be under way. */
const WAITING_PER_SLOT = 100;
const FULL_RETRY_SECONDS = 5;
/** An operation that has no turn for so long leaves. */
const PATIENCE_MS = 30_000;

interface Operation {
  readonly owner: unknown;
  readonly waiters: Set<Waiter>;
  /** Walks that have their turn now. */
  running: number;
  /** Since its patience was looked at last. */
  hadTurn: boolean;
  patience: AbortController | undefined;
}

interface Waiter {
  readonly isNew: boolean;
  readonly serve: () => void;
  readonly refuse: (reason: unknown) => void;
}

interface Holder {
  readonly of: Operation;
  has: boolean;
}

/** @param max walks at a time */
export function createWalkSlots(max: number, clock: Pick<Clock, 'sleep'>): WalkSlots {
  const operations = new WeakMap<object, Operation>();
  // Maps and sets keep the order in which they came, and one that was served goes to its end.
  const queues = new Map<unknown, Set<Operation>>();
  const resting = new Set<Holder>();
  let taken = 0;

  return {
    get taken() {
      return taken;
    },
    get waiting() {
      return waitingOperations().reduce((sum, { waiters }) => sum + waiters.size, 0);
    },
    take: async ({ owner, operation, signal }) => {
      const of = operations.get(operation) ?? createOperation(owner);
      operations.set(operation, of);
      await waitInTurn(of, signal, true);
      const holder: Holder = { of, has: true };
      return {
        rest: () => {
          if (!holder.has) return;
          resting.add(holder);
          serve();
        },
        resume: async () => {
          resting.delete(holder);
          if (holder.has) return;
          await waitInTurn(of, signal, false);
          holder.has = true;
        },
        giveBack: () => {
          resting.delete(holder);
          if (!holder.has) return;
          release(holder);
          serve();
        },
      };
    },
  };

  async function waitInTurn(of: Operation, signal: AbortSignal, isNew: boolean): Promise<void> {
    signal.throwIfAborted();
    if (isNew && of.running === 0 && of.waiters.size === 0 && isFull(of.owner)) throw full();
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
    queues.set(of.owner, (queues.get(of.owner) ?? new Set()).add(of));
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

  /** And of this owner not less than a fair part of them. */
  function isFull(owner: unknown): boolean {
    const most = max * WAITING_PER_SLOT;
    const own = queues.get(owner)?.size ?? 0;
    const sharers = queues.size + (own > 0 ? 0 : 1);
    return own >= most / sharers && waitingOperations().length >= most;
  }

  function waitingOperations(): Operation[] {
    return [...queues.values()].flatMap((own) => [...own]);
  }

  /** Until none of it waits. A turn of any of its walks is one of the operation. */
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
    const own = queues.get(of.owner);
    own?.delete(of);
    if (own?.size === 0) queues.delete(of.owner);
  }

  function serve(): void {
    while (queues.size > 0 && (taken < max || takeFromResting())) {
      const [[owner, own]] = queues as unknown as [[unknown, Set<Operation>]];
      const [of] = own as unknown as [Operation];
      const [next] = of.waiters as unknown as [Waiter];
      leave(of, next);
      if (own.delete(of)) own.add(of);
      if (queues.delete(owner)) queues.set(owner, own);
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
    holder.has = false;
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
    `Too many drains wait for their turn, many of this caller among them. Try again in ${FULL_RETRY_SECONDS} s.`,
    { retryAfter: FULL_RETRY_SECONDS },
  );
}

function tooLate(max: number) {
  const retryAfter = PATIENCE_MS / 1000;
  return refusal(
    'RATE_LIMITED',
    `The drain had no turn within ${retryAfter} s, since the gateway runs ${max} at a time and others took longer. ` +
      `Try again in ${retryAfter} s, or have the operator raise MAX_DRAINS.`,
    { retryAfter },
  );
}

type Pages<R> = AsyncGenerator<WalkedPage<R>, void, undefined>;

/**
 * A walk that waits for its turn before it asks for anything, and lets others have it while its consumer
 * does not read on.
 *
 * @param begin makes the walk; it calls `takeTurn` before each request
 */
export async function* walkInTurn<R>(
  { slots, ...turn }: WalkTurn & { readonly slots: WalkSlots },
  begin: (takeTurn: () => Promise<void>) => Pages<R>,
): Pages<R> {
  const leaving = new AbortController();
  let taking: Promise<WalkSlot> | undefined;
  let slot: WalkSlot | undefined;
  const pages = begin(async () => {
    taking ??= slots.take({ ...turn, signal: AbortSignal.any([turn.signal, leaving.signal]) });
    slot = await taking;
  });
  try {
    for (;;) {
      const { done, value } = await pages.next();
      if (done) return;
      // A consumer that only collects is back before this; one that waits for its own caller is not.
      const resting = setImmediate(() => slot?.rest());
      yield value;
      clearImmediate(resting);
      await slot?.resume();
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
