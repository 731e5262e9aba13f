import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type { DestinationStream, Logger } from 'pino';
import type { Config } from '../config.ts';
import { OperatorMistake } from '../errors.ts';
import type { Machine } from '../setup/machine.ts';
import { createLog } from '../telemetry/log.ts';

/** The process around a command. It is passed in, so that tests can replace it. */
export interface Terminal extends Machine {
  readonly env: Record<string, string | undefined>;
  readonly stdin: Readable;
  readonly stdout: NodeJS.WritableStream & DestinationStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
  /** Calls the listener when the process ends, even by an uncaught error. The listener must be synchronous. */
  readonly onExit: (listener: () => void) => void;
  /** Aborted when the process is asked to stop. */
  readonly stop: AbortSignal;
}

/** A failure of which only the message is printed. If it is a mistake of the operator: see `OperatorMistake`. */
export class CommandError extends Error {
  override name = 'CommandError';
  readonly exitCode: number;
  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The exit code of a command that was used or configured wrongly. */
export const USAGE_ERROR = 2;

/** The exit code of a command that ended with this error. */
export function exitCodeOf(error: unknown): number {
  const isMistake = [error, (error as Error).cause].some((it) => it instanceof OperatorMistake);
  if (isMistake) return USAGE_ERROR;
  return error instanceof CommandError ? error.exitCode : 1;
}

/** The log of a command that does not serve: on the standard error, and only if LOG_LEVEL is set. */
export function commandLog(
  { logLevel, production }: Pick<Config, 'logLevel' | 'production'>,
  { env, stderr }: Terminal,
): Promise<Logger> {
  const level = env['LOG_LEVEL'] === undefined ? 'silent' : logLevel;
  return createLog({ level, isJson: production, colors: false, destination: stderr });
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

/** Removes the characters of a name from the service that could control the terminal. */
export function printable(name: string): string {
  return name.replace(/\p{C}+/gu, ' ').trim();
}

/** How often. */
export function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
