import pino, { type DestinationStream, type Logger } from 'pino';

interface LogOptions {
  readonly level: string;
  /** Whether lines are JSON as pino writes them; otherwise they are for people. */
  readonly isJson: boolean;
  readonly colors: boolean;
  readonly destination: DestinationStream & NodeJS.WritableStream;
}

export async function createLog(options: LogOptions): Promise<Logger> {
  const { level, isJson, colors, destination } = options;
  const stream = isJson
    ? destination
    : (await import('pino-pretty')).default({
        destination,
        colorize: colors,
        sync: true,
        ignore: 'pid,hostname',
        singleLine: true,
        messageFormat: ({ msg }) => (typeof msg === 'string' ? escaped(msg, ALL_CONTROLS) : ''),
      });
  // JSON does not escape these, and a terminal that shows the log would obey some of them.
  const write = (text: string) => void stream.write(escaped(text, CONTROLS_ABOVE_ASCII, isJson));
  return pino({ level, serializers: { err: describe } }, isJson ? joining(write) : { write });
}

/** Returns a log of another program that describes errors like `createLog` does. */
export function withoutDetails(log: Logger): Logger {
  return log.child({}, { serializers: { err: describe } });
}

/** How long lines are collected, ms. */
const COLLECTING_MS = 10;

/**
 * Writes lines together, since a write to a pipe costs as much as a tenth of a request. A line of a level above `info`
 * is written at once, with all lines before it. `flush` writes the remaining lines.
 */
function joining(write: (text: string) => void): DestinationStream & { flush(): void } {
  let lines: string[] = [];
  const destination = {
    [pino.symbols.needsMetadataGsym]: true,
    lastLevel: 0,
    write: (line: string) => {
      if (lines.push(line) === 1) setTimeout(destination.flush, COLLECTING_MS);
      if (destination.lastLevel > pino.levels.values['info']!) destination.flush();
    },
    flush: () => {
      const collected = lines;
      lines = [];
      if (collected.length > 0) write(collected.join(''));
    },
  };
  return destination;
}

const CONTROLS_ABOVE_ASCII = /[\u007f-\u009f\u2028\u2029]/g;
// oxlint-disable-next-line no-control-regex -- it matches them on purpose
const ALL_CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** Writes control characters as JSON escapes. @param isJson whether the text is JSON; otherwise it is shown as it is */
function escaped(text: string, controls: RegExp, isJson = true): string {
  return text.replace(controls, (control) => {
    const code = control.charCodeAt(0).toString(16).padStart(4, '0');
    return isJson ? `\\u${code}` : `\\\\u${code}`;
  });
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
