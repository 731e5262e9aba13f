import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import { NoAnswerError, within, type Clock } from '../clock.ts';
import { OperatorMistake } from '../errors.ts';
import { createChannel, type Channel } from './channel.ts';
import { returnUnaccepted } from './unaccepted-connections.ts';

/** The processes that answer requests behind one port, started by the one that is called the primary. */
export interface WorkerProcesses {
  /**
   * @returns the address of the port, once all of them answer requests; undefined if they were stopped before that
   * @throws Error when one of them ends before it serves: what it has reported, or else the log, says why
   */
  start(): Promise<string | undefined>;
  readonly running: readonly RunningWorker[];
  /** How many have ended without being asked to, since the start. */
  readonly ended: Readonly<Record<EndReason, number>>;
  /** Asks all of them to stop. None is replaced any more, and one that does not end in time is killed. */
  stop(): void;
  /** After `stop`: they skip every wait that is not needed. */
  hurry(): void;
  /** Stops them, and waits until all have ended. */
  close(): Promise<void>;
}

export interface RunningWorker {
  readonly channel: Channel;
  /** The id of the process. */
  readonly pid: number;
  readonly state: WorkerState;
}

/** `silent`: it does not answer the primary. It stands still, and is killed if that lasts. */
export type WorkerState = 'starting' | 'serving' | 'silent';

/** `died`: by itself. `silent`: it was killed, because it did not answer the primary. */
export type EndReason = 'died' | 'silent';

interface WorkerOptions {
  readonly count: number;
  /** Called for each new process, before it starts to serve. */
  readonly onStart: (channel: Channel, isFirst: boolean) => void;
  /** How long workers that were asked to stop accept requests, ms. */
  readonly shutdownDelayMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Between the end of a worker and the start of the next one: one that ends at once is not started all the time. */
const PAUSE_MS = 1_000;
/** Between an answer of a worker and the next request whether it answers. */
const CHECK_PAUSE_MS = 1_000;
/** A worker has 10 s for the requests in flight, and a second for its last report. */
const LAST_REQUESTS_MS = 15_000;

/**
 * How long a worker may be silent, ms, until that is reported, and until it is killed. Its event loop is never blocked
 * for longer than 50 ms on purpose, but collecting garbage, and a machine that is short of memory or CPU, can take
 * seconds. While it starts, it loads the program and compiles the schema.
 */
const PATIENCE = {
  starting: { reportMs: 30_000, killMs: 120_000 },
  serving: { reportMs: 5_000, killMs: 30_000 },
};

/** The primary, as a worker sees it. When the primary ends, Node ends the worker at once. */
export interface ChannelToPrimary extends Channel {
  /** Without this, the channel would keep the process alive. */
  close(): Promise<void>;
}

/** Undefined in a process that is not a worker. */
export function channelToPrimary(clock: Clock): ChannelToPrimary | undefined {
  const { worker } = cluster;
  if (!worker) return undefined;
  const channel = createChannel(worker, 'the primary process', clock);
  return Object.assign(channel, { close: async () => void worker.disconnect() });
}

export function createWorkerProcesses(options: WorkerOptions): WorkerProcesses {
  const { count, onStart, shutdownDelayMs, clock, log } = options;
  const running = new Map<number, WorkerProcess>();
  const exits = new Set<Promise<void>>();
  const ended = { died: 0, silent: 0 };
  const stopping = new AbortController();
  let hasStarted = false;

  return {
    start: async () => {
      try {
        const all = Array.from({ length: count }, (_, number) => startOne(number));
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
    get running() {
      return [...running.values()];
    },
    ended,
    stop,
    hurry: () => end(LAST_REQUESTS_MS),
    close,
  };

  function startOne(number: number): Promise<string> {
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
    // Its own end is logged, and it is replaced again.
    await startOne(number).catch(() => undefined);
  }

  /** Requests an answer of the worker again and again, until it has ended. */
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

  /** @throws NoAnswerError when the patience is over */
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

  function stop(): void {
    if (stopping.signal.aborted) return;
    stopping.abort();
    end(shutdownDelayMs + LAST_REQUESTS_MS);
  }

  /** @param patienceMs after this, those that have not ended are killed */
  function end(patienceMs: number): void {
    for (const { worker } of running.values()) worker.process.kill('SIGTERM');
    within(clock, allEnded(), () => patienceMs, 'the workers').catch(() => {
      for (const { pid, kill } of running.values()) {
        log.error({ worker: pid }, 'a worker has not ended after it was asked to, and is killed');
        kill();
      }
    });
  }

  async function close(): Promise<void> {
    stop();
    await allEnded();
  }

  async function allEnded(): Promise<void> {
    await Promise.all(exits);
  }
}

class WorkerProcess implements RunningWorker {
  readonly worker: Worker;
  readonly channel: Channel;
  /** Aborted when it has ended. */
  readonly end = new AbortController();
  isServing = false;
  isSilent = false;

  constructor(worker: Worker, clock: Clock) {
    this.worker = worker;
    this.channel = createChannel(worker, 'the worker', clock);
  }

  get pid(): number {
    return this.worker.process.pid!;
  }

  get state(): WorkerState {
    if (this.isSilent) return 'silent';
    return this.isServing ? 'serving' : 'starting';
  }

  /** Also one that was stopped, or does not run its event loop. */
  readonly kill = (): void => {
    this.worker.process.kill('SIGKILL');
  };
}
