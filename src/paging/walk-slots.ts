/** So many walks at a time; who has to wait is served in turn, one owner after the other. */
export interface WalkSlots {
  /** @param owner whose walk it is: one with a thousand walks waits no less than the others */
  take(owner: unknown, signal: AbortSignal): Promise<WalkSlot>;
  readonly taken: number;
  readonly waiting: number;
}

export interface WalkSlot {
  /** Others may have it while this walk has nothing to do. */
  rest(): void;
  /** Goes on; waits in turn when somebody else has it now. */
  resume(): Promise<void>;
  giveBack(): void;
}

/** @param max walks at a time */
export function createWalkSlots(max: number): WalkSlots {
  // A map keeps the order in which owners came, and one who was served goes to its end.
  const queues = new Map<unknown, Set<() => void>>();
  const resting = new Set<Holder>();
  let taken = 0;

  return {
    get taken() {
      return taken;
    },
    get waiting() {
      return [...queues.values()].reduce((sum, { size }) => sum + size, 0);
    },
    take: async (owner, signal) => {
      await waitInTurn(owner, signal);
      const holder: Holder = { has: true };
      return {
        rest: () => {
          if (!holder.has) return;
          resting.add(holder);
          serve();
        },
        resume: async () => {
          resting.delete(holder);
          if (holder.has) return;
          await waitInTurn(owner, signal);
          holder.has = true;
        },
        giveBack: () => {
          resting.delete(holder);
          if (!holder.has) return;
          holder.has = false;
          taken -= 1;
          serve();
        },
      };
    },
  };

  async function waitInTurn(owner: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const queue = queues.get(owner) ?? new Set();
    queues.set(owner, queue.add(resolve));
    const leave = () => {
      const left = queues.get(owner);
      left?.delete(resolve);
      if (left?.size === 0) queues.delete(owner);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', leave, { once: true });
    serve();
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  function serve(): void {
    while (queues.size > 0 && (taken < max || takeFromResting())) {
      const [[owner, queue]] = queues as unknown as [[unknown, Set<() => void>]];
      const [next] = queue;
      queue.delete(next!);
      queues.delete(owner);
      if (queue.size > 0) queues.set(owner, queue);
      taken += 1;
      next!();
    }
  }

  function takeFromResting(): boolean {
    const [holder] = resting;
    if (!holder) return false;
    resting.delete(holder);
    holder.has = false;
    taken -= 1;
    return true;
  }
}

interface Holder {
  has: boolean;
}
