import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import { NoAnswerError, within, type Clock } from '../clock.ts';
import { OperatorMistake } from '../errors.ts';
import { Channel } from './channel.ts';
import { returnUnaccepted } from './unaccepted-connections.ts';

/** `silent`: the worker does not answer the primary, and is killed if that lasts. */
type WorkerState = 'starting' | 'serving' | 'silent';

interface WorkerOptions {
  readonly count: number;
  /** Called for each new process, before it starts to serve. */
  readonly onStart: (channel: Channel, isFirst: boolean) => void;
  /** How long workers still accept requests after they were asked to stop, ms. */
  readonly shutdownDelayMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The pause before a worker is replaced, ms: one that ends at once must not be restarted in a tight loop. */
const PAUSE_MS = 1_000;
/** The pause between two checks of a worker, ms. */
const CHECK_PAUSE_MS = 1_000;
/** Enough for a worker's 10 s for requests in flight and 1 s for its last report. */
const LAST_REQUESTS_MS = 15_000;

/**
 * How long a worker may be silent before that is reported, and before it is killed, ms. No code deliberately blocks the
 * event loop for more than 50 ms, but garbage collection, or a machine short of memory or CPU, can take seconds. While
 * a worker starts, it loads the program and compiles the schema.
 */
const PATIENCE = {
  starting: { reportMs: 30_000, killMs: 120_000 },
  serving: { reportMs: 5_000, killMs: 30_000 },
};

export type ChannelToPrimary = NonNullable<ReturnType<typeof channelToPrimary>>;

/** Undefined in a process that is not a worker. When the primary ends, Node ends its workers at once. */
export function channelToPrimary(clock: Clock) {
  const { worker } = cluster;
  if (!worker) return undefined;
  const channel = new Channel(worker, 'the primary process', clock);
  // If it were not closed, the channel would keep the process alive.
  return Object.assign(channel, { close: async () => void worker.disconnect() });
}

export type WorkerProcesses = ReturnType<typeof createWorkerProcesses>;

/** The processes that answer requests behind one port. The primary starts them. */
export function createWorkerProcesses(options: WorkerOptions) {
  const { count, onStart, shutdownDelayMs, clock, log } = options;
  const running = new Map<number, WorkerProcess>();
  const exits = new Set<Promise<void>>();
  /** How many workers have ended unexpectedly: by themselves, or killed because they did not answer the primary. */
  const ended = { died: 0, silent: 0 };
  const stopping = new AbortController();
  let hasStarted = false;

  return {
    /**
     * @returns the address of the port, once all workers answer requests; undefined if they were stopped before that
     * @throws Error if one of them ends before it serves: the reason is in its report, or else in the log
     */
    start: async (): Promise<string | undefined> => {
      try {
        const all = Array.from({ length: count }, (_, number) => startWorker(number));
        const [url] = await Promise.all(all);
        hasStarted = true;
        return url;
      } catch (error) {
        const wasStopped = stopping.signal.aborted;
        await close();
        if (wasStopped) return undefined;
        throw error;
      }
    },
    get running(): readonly WorkerProcess[] {
      return [...running.values()];
    },
    ended,
    stop,
    /** After `stop`: workers skip every wait that is not needed. */
    hurry: () => end(LAST_REQUESTS_MS),
    close,
  };

  function startWorker(number: number): Promise<string> {
    const process = new WorkerProcess(cluster.fork(), clock);
    const { worker, channel, pid } = process;
    returnUnaccepted(worker);
    running.set(number, process);
    const serving = Promise.withResolvers<string>();
    channel.onReport('serving', ({ url }) => {
      process.isServing = true;
      serving.resolve(url);
    });
    channel.answer('failed', async ({ message, isMistake }) => {
      if (hasStarted) log.error({ worker: pid }, `a worker cannot start: ${message}`);
      serving.reject(isMistake ? new OperatorMistake(message) : new Error(message));
      return null;
    });
    const exit = new Promise<void>((resolve) => {
      worker.once('exit', (code, signal) => {
        running.delete(number);
        process.end.abort();
        const how = signal ?? `exit code ${code}`;
        serving.reject(new Error(`A worker ended while it started (${how}). The log has more.`));
        resolve();
        if (stopping.signal.aborted) return;
        ended[process.isSilent ? 'silent' : 'died'] += 1;
        if (hasStarted) void replace(number, { worker: pid, code, signal });
      });
    });
    exits.add(exit);
    void exit.then(() => exits.delete(exit));
    onStart(channel, number === 0);
    void watch(process);
    return serving.promise;
  }

  async function replace(
    number: number,
    how: { worker: number; code: number; signal: string },
  ): Promise<void> {
    log.error(how, 'a worker ended, and is replaced');
    await clock.sleep(PAUSE_MS, stopping.signal).catch(() => undefined);
    if (stopping.signal.aborted) return;
    // If the new worker ends too, that is logged, and it is replaced again.
    await startWorker(number).catch(() => undefined);
  }

  /** Checks the worker repeatedly until it has ended. */
  async function watch(process: WorkerProcess): Promise<void> {
    const {
      pid,
      end: { signal },
      kill,
    } = process;
    try {
      for (;;) {
        await untilItAnswers(process);
        await clock.sleep(CHECK_PAUSE_MS, signal);
      }
    } catch (error) {
      if (!(error instanceof NoAnswerError)) return;
      log.error({ worker: pid }, `a worker stands still, and is killed: ${error.message}`);
      kill();
    }
  }

  /** @throws NoAnswerError if the worker does not answer in time */
  async function untilItAnswers(process: WorkerProcess): Promise<void> {
    const { channel, pid, isServing } = process;
    const { reportMs, killMs } = PATIENCE[isServing ? 'serving' : 'starting'];
    const answer = channel.request('alive', null, killMs);
    try {
      await within(clock, answer, () => reportMs, 'the worker');
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      const patience = `It is killed and replaced unless it answers within ${killMs / 1000} s.`;
      log.error({ worker: pid }, `A worker has not answered for ${reportMs / 1000} s. ${patience}`);
      process.isSilent = true;
      await answer;
      process.isSilent = false;
      log.info({ worker: pid }, 'the worker answers again');
    }
  }

  /** Asks all workers to stop, replaces none of them, and kills those that do not end in time. */
  function stop(): void {
    if (stopping.signal.aborted) return;
    stopping.abort();
    end(shutdownDelayMs + LAST_REQUESTS_MS);
  }

  /** @param patienceMs workers that have not ended by then are killed */
  function end(patienceMs: number): void {
    for (const { worker } of running.values()) worker.process.kill('SIGTERM');
    within(clock, allEnded(), () => patienceMs, 'the workers').catch(() => {
      for (const { pid, kill } of running.values()) {
        log.error({ worker: pid }, 'a worker has not ended after it was asked to, and is killed');
        kill();
      }
    });
  }

  /** Stops the workers, and waits until all have ended. */
  async function close(): Promise<void> {
    stop();
    await allEnded();
  }

  async function allEnded(): Promise<void> {
    await Promise.all(exits);
  }
}

export class WorkerProcess {
  readonly worker: Worker;
  readonly channel: Channel;
  /** Aborted when it has ended. */
  readonly end = new AbortController();
  isServing = false;
  isSilent = false;

  constructor(worker: Worker, clock: Clock) {
    this.worker = worker;
    this.channel = new Channel(worker, 'the worker', clock);
  }

  /** The id of the process. */
  get pid(): number {
    return this.worker.process.pid!;
  }

  get state(): WorkerState {
    if (this.isSilent) return 'silent';
    return this.isServing ? 'serving' : 'starting';
  }

  /** Also ends a worker that was stopped (SIGSTOP) or blocks its event loop. */
  readonly kill = (): void => {
    this.worker.process.kill('SIGKILL');
  };
}
