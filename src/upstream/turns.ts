import PQueue from 'p-queue';

/** Somebody waits for this one answer, or it is one of the many pages of a walk. */
export type Priority = 'interactive' | 'drain';

export interface Turns {
  /**
   * Does the task when it is its turn. Who is aborted while waiting leaves the queue at once.
   *
   * @throws what the task throws, and the abort reason of the signal
   */
  take<T>(task: () => Promise<T>, by: TurnTaker): Promise<T>;
  readonly load: TurnsLoad;
}

export interface TurnsLoad {
  readonly inFlight: number;
  readonly waiting: Readonly<Record<Priority, number>>;
}

export interface TurnTaker {
  readonly priority: Priority;
  readonly signal?: AbortSignal | undefined;
}

/**
 * So many tasks at a time. Interactive ones overtake drains that wait, and a quarter of the places is theirs
 * alone, so that none of them has to wait for a slow page either.
 */
export function createTurns(concurrency: number): Turns {
  const all = new PQueue({ concurrency });
  const drains = new PQueue({ concurrency: concurrency - reserved(concurrency) });
  return {
    take: (task, { priority, signal }) => {
      const options = signal ? { signal } : {};
      return priority === 'interactive'
        ? all.add(task, { ...options, priority: 1 })
        : drains.add(() => all.add(task, { ...options, priority: 0 }), options);
    },
    get load() {
      return {
        inFlight: all.pending,
        waiting: {
          interactive: all.sizeBy({ priority: 1 }),
          drain: drains.size + all.sizeBy({ priority: 0 }),
        },
      };
    },
  };
}

function reserved(concurrency: number): number {
  return concurrency > 1 ? Math.max(1, Math.floor(concurrency / 4)) : 0;
}
