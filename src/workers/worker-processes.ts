import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { createChannel, type Channel } from './channel.ts';

/** The processes that answer requests behind one port, started by the one that is called the primary. */
export interface WorkerProcesses {
  /** The address of the port, once all of them answer requests. */
  readonly url: string;
  /** Those that are running. */
  readonly channels: readonly Channel[];
  /** Passes a signal on to all of them: the first asks them to stop. None is replaced any more. */
  signal(): void;
  /** Waits until all have ended, after `signal`. */
  close(): Promise<void>;
}

interface WorkerOptions {
  readonly count: number;
  /** Called for each new process, before it starts to serve. */
  readonly onStart: (channel: Channel, isFirst: boolean) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Between the end of a worker and the start of the next one: one that ends at once is not started all the time. */
const PAUSE_MS = 1_000;

/** The primary, as a worker sees it. When the primary ends, Node ends the worker at once. */
export interface ChannelToPrimary extends Channel {
  /** Without this, the channel would keep the process alive. */
  close(): Promise<void>;
}

/** Undefined in a process that is not a worker. */
export function channelToPrimary(): ChannelToPrimary | undefined {
  const { worker } = cluster;
  if (!worker) return undefined;
  return Object.assign(createChannel(worker), { close: async () => void worker.disconnect() });
}

/** @throws Error when one of them ends before it serves; it has logged why */
export async function startWorkers(options: WorkerOptions): Promise<WorkerProcesses> {
  const { count, onStart, clock, log } = options;
  const running = new Map<number, { readonly worker: Worker; readonly channel: Channel }>();
  const ended = new Set<Promise<void>>();
  const stopping = new AbortController();

  const start = (number: number): Promise<string> => {
    const worker = cluster.fork();
    const channel = createChannel(worker);
    running.set(number, { worker, channel });
    const serving = Promise.withResolvers<string>();
    channel.onReport('serving', ({ url }) => serving.resolve(url));
    const end = new Promise<void>((resolve) => {
      worker.once('exit', (code, signal) => {
        running.delete(number);
        serving.reject(
          new Error(`A worker ended while it started (${signal ?? `exit code ${code}`}).`),
        );
        resolve();
        if (hasStarted && !stopping.signal.aborted) void replace(number, { code, signal });
      });
    });
    ended.add(end);
    void end.then(() => ended.delete(end));
    onStart(channel, number === 0);
    return serving.promise;
  };
  const replace = async (number: number, how: { code: number; signal: string }) => {
    log.error(how, 'a worker ended, and is replaced');
    await clock.sleep(PAUSE_MS, stopping.signal).catch(() => undefined);
    if (stopping.signal.aborted) return;
    // Its own end is logged, and it is replaced again.
    await start(number).catch(() => undefined);
  };
  const signal = () => {
    stopping.abort();
    for (const { worker } of running.values()) worker.process.kill('SIGTERM');
  };
  const close = async () => {
    await Promise.all(ended);
  };

  let hasStarted = false;
  try {
    const [url] = await Promise.all(Array.from({ length: count }, (_, number) => start(number)));
    hasStarted = true;
    return {
      url: url!,
      get channels() {
        return Array.from(running.values(), ({ channel }) => channel);
      },
      signal,
      close,
    };
  } catch (error) {
    signal();
    await close();
    throw error;
  }
}
