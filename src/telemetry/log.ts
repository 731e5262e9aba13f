import pino, { type DestinationStream, type Logger } from 'pino';

interface LogOptions {
  readonly level: string;
  /** Whether lines are JSON as pino writes them; otherwise they are for people. */
  readonly isJson: boolean;
  readonly destination: DestinationStream & NodeJS.WritableStream & { readonly isTTY?: boolean };
}

export async function createLog({ level, isJson, destination }: LogOptions): Promise<Logger> {
  const settings = { level, serializers: { err: describe } };
  if (isJson) return pino(settings, collecting(destination));
  const { default: pretty } = await import('pino-pretty');
  const colorize = destination.isTTY === true;
  const lines = { destination, colorize, sync: true, ignore: 'pid,hostname', singleLine: true };
  return pino(settings, pretty(lines));
}

/** Returns a log of another program that describes errors like `createLog` does. */
export function withoutDetails(log: Logger): Logger {
  return log.child({}, { serializers: { err: describe } });
}

/** How long lines are collected, ms: a write to a pipe costs as much as a tenth of a request. */
const COLLECTING_MS = 10;

/** Writes lines together. `flush` writes the remaining lines, at the end of the process. */
function collecting(destination: DestinationStream): DestinationStream & { flush(): void } {
  let lines: string[] = [];
  const flush = () => {
    const collected = lines;
    lines = [];
    if (collected.length > 0) destination.write(collected.join(''));
  };
  return {
    write: (line) => void (lines.push(line) === 1 && setTimeout(flush, COLLECTING_MS)),
    flush,
  };
}

interface Described {
  readonly type: string;
  readonly message: string;
  readonly code: unknown;
  readonly stack: string | undefined;
  readonly cause?: Described | string;
}

/**
 * Logs the kind and the origin of an error, and nothing else. A GraphQL error also holds its document, and with it the
 * literals of a caller's query, which must not be logged.
 */
function describe(error: unknown, depth = 0): Described | string {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const { code, extensions } = error as { code?: unknown; extensions?: { code?: unknown } };
  return {
    type: name,
    message,
    code: extensions?.code ?? code,
    // The message of a coded error is enough; its stack does not help.
    stack: depth === 0 && !extensions ? framesOf(stack) : undefined,
    ...(cause !== undefined && depth < 4 && { cause: describe(cause, depth + 1) }),
  };
}

/** Returns the first frames. The message before them is left out: its lines could look like log lines. */
function framesOf(stack: string | undefined): string | undefined {
  const frames = stack?.split('\n').filter((line) => /^ +at /.test(line));
  return frames?.slice(0, 7).join('\n');
}
