import pino, { type DestinationStream, type Logger } from 'pino';

export interface LogOptions {
  readonly level: string;
  /** JSON lines for machines; otherwise lines for people. */
  readonly json: boolean;
  readonly colors: boolean;
  readonly destination: DestinationStream & NodeJS.WritableStream;
}

export async function createLog({ level, json, colors, destination }: LogOptions): Promise<Logger> {
  const stream = json
    ? destination
    : (await import('pino-pretty')).default({
        destination,
        colorize: colors,
        sync: true,
        ignore: 'pid,hostname',
        singleLine: true,
        messageFormat: ({ msg }) => (typeof msg === 'string' ? escaped(msg, ALL_CONTROLS) : ''),
      });
  // JSON itself lets these through: a terminal that shows the log would obey some of them.
  const write = (text: string) => void stream.write(escaped(text, CONTROLS_BEHIND_ASCII, json));
  return pino({ level, serializers: { err: describe } }, json ? joining(write) : { write });
}

/**
 * Writes the lines of one turn of the event loop together: a write to a pipe costs a tenth of a request. What is worse
 * than information is written at once, with everything before it.
 */
function joining(write: (text: string) => void): DestinationStream {
  let lines = '';
  const flush = () => {
    const text = lines;
    lines = '';
    if (text !== '') write(text);
  };
  const destination = {
    [pino.symbols.needsMetadataGsym]: true,
    lastLevel: 0,
    write: (line: string) => {
      if (lines === '') setImmediate(flush);
      lines += line;
      if (destination.lastLevel > pino.levels.values['info']!) flush();
    },
  };
  return destination;
}

const CONTROLS_BEHIND_ASCII = /[\u007f-\u009f\u2028\u2029]/g;
// oxlint-disable-next-line no-control-regex -- they are what it is about
const ALL_CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** As JSON writes them. @param isRead whether it is JSON that somebody reads back as it was; else shown as it stands */
function escaped(text: string, controls: RegExp, isRead = true): string {
  return text.replace(controls, (control) => {
    const code = control.charCodeAt(0).toString(16).padStart(4, '0');
    return isRead ? `\\u${code}` : `\\\\u${code}`;
  });
}

/**
 * Of an error only what it is and where it came from. A GraphQL error also holds its document, and with it
 * the literals of a caller's query: those stay out of logs.
 */
function describe(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const { code, extensions } = error as { code?: unknown; extensions?: { code?: unknown } };
  return {
    type: name,
    message,
    code: extensions?.code ?? code,
    // Of an error with a code of ours the message says all; where it was made says nothing.
    stack: depth === 0 && !extensions ? framesOf(stack) : undefined,
    ...(cause !== undefined && depth < 4 && { cause: describe(cause, depth + 1) }),
  };
}

/** The first places; a message of several lines stands before them, and could pass for lines of the log. */
function framesOf(stack: string | undefined): string | undefined {
  const frames = stack?.split('\n').filter((line) => /^ +at /.test(line));
  return frames?.slice(0, 7).join('\n');
}
