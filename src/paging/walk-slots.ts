import type { Clock } from '../clock.ts';
import { Queue } from '../queue.ts';
import { refusal, WALK_LEFT } from './failures.ts';
import type { WalkedPages } from './walk.ts';

interface WalkTurn {
  /** The owner of the walk. One with a thousand walks waits as long as the others. */
  readonly owner: unknown;
  /**
   * The operation that needs the walk. All walks of an operation keep waiting as long as one of them gets a slot now
   * and then.
   */
  readonly operation: object;
  readonly signal: AbortSignal;
}

interface Operation {
  /** The number of its walks that have a slot. */
  running: number;
  /** When one of its walks last returned a slot, by `clock.elapsed()`. */
  since: number;
}

/** The number of operations that may wait, per slot. */
const WAITING_PER_SLOT = 100;
const FULL_RETRY_SECONDS = 5;
/** How long an operation may wait for a slot, ms. */
const PATIENCE_MS = 30_000;

type WalkSlots = ReturnType<typeof createWalkSlots>;
export type WalkSlot = Awaited<ReturnType<WalkSlots['take']>>;

/**
 * Limits the number of current walks. Waiting walks get slots in turn: owners take turns, and so do the operations of
 * an owner. The number of waiting operations and their time are limited.
 *
 * @param max walks at a time
 */
export function createWalkSlots(max: number, clock: Clock) {
  const operations = new WeakMap<object, Operation>();
  /** Each operation counts once, however many of its walks wait. */
  const queue = new Queue<Operation>({ clock, tooLate: () => tooLate(max) });
  let taken = 0;

  return {
    get taken() {
      return taken;
    },
    get waiting() {
      return queue.size;
    },
    /**
     * @throws PagesRefused: RATE_LIMITED with `retryAfter`, if too many operations wait or no slot was free in time;
     *   the abort reason of the signal
     */
    take: async ({ owner, operation: group, signal }: WalkTurn) => {
      signal.throwIfAborted();
      const operation = operations.get(group) ?? { running: 0, since: 0 };
      operations.set(group, operation);
      if (taken < max) begin(operation);
      else {
        const isFirst = operation.running === 0 && !queue.has(owner, group);
        if (isFirst && queue.isFull(owner, max * WAITING_PER_SLOT)) throw full();
        const since = clock.elapsed();
        const until = () =>
          PATIENCE_MS +
          (operation.running > 0 ? clock.elapsed() : Math.max(since, operation.since));
        await queue.wait(operation, { owner, group, signal, until });
      }
      let hasSlot = true;
      return {
        /** Lets other walks use the slot, finally or while this walk has nothing to do. */
        giveBack: () => {
          if (!hasSlot) return;
          hasSlot = false;
          taken -= 1;
          operation.running -= 1;
          operation.since = clock.elapsed();
          serve();
        },
        /**
         * Returns a promise if other walks use all slots, and then waits in turn, without a time limit: a walk that has
         * begun is not refused.
         */
        resume: (): Promise<void> | undefined => {
          if (hasSlot) return undefined;
          if (taken >= max) {
            return queue
              .wait(operation, { owner, group, signal })
              .then(() => void (hasSlot = true));
          }
          hasSlot = true;
          begin(operation);
          return undefined;
        },
      };
    },
  };

  function begin(operation: Operation): void {
    taken += 1;
    operation.running += 1;
  }

  function serve(): void {
    if (queue.size === 0) return;
    for (const next of queue) {
      if (taken >= max) return;
      begin(next.entry);
      next.begin();
    }
  }
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
 * A walk that waits for a slot before its first request, and lets other walks use the slot while its consumer does not
 * read on.
 *
 * @param begin creates the walk, which calls `takeSlot` before each request; that returns a promise if it has to wait
 *   for a slot
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
      const resting = setImmediate(() => slot?.giveBack());
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
