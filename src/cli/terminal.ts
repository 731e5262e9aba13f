import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type { DestinationStream } from 'pino';
import type { Clock } from '../clock.ts';

/** The process around a command. It is passed in, so that tests can replace it. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly stdin: Readable;
  readonly stdout: NodeJS.WritableStream & DestinationStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
  /** Calls the listener when the process ends, even by an uncaught error. The listener must be synchronous. */
  readonly onExit: (listener: () => void) => void;
  /** Aborted when the process is asked to stop. */
  readonly stop: AbortSignal;
}

export async function stopped(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

const UNITS = [
  ['day', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const;

/** The two largest units, such as "15 h 59 min". */
export function duration(seconds: number): string {
  let left = Math.floor(seconds);
  const parts = UNITS.flatMap(([name, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count > 0 ? [`${count} ${name === 'day' && count > 1 ? 'days' : name}`] : [];
  });
  return parts.slice(0, 2).join(' ') || '0 s';
}
