import pino, { type DestinationStream, type Logger } from 'pino';
import pretty from 'pino-pretty';

export interface LogOptions {
  readonly level: string;
  /** JSON lines for machines; otherwise lines for people. */
  readonly json: boolean;
  readonly colors: boolean;
  readonly destination: DestinationStream & NodeJS.WritableStream;
}

export function createLog({ level, json, colors, destination }: LogOptions): Logger {
  const stream = json
    ? destination
    : pretty({
        destination,
        colorize: colors,
        sync: true,
        ignore: 'pid,hostname',
        singleLine: true,
      });
  return pino({ level, serializers: { err: describe } }, stream);
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
    stack: depth === 0 && !extensions ? stack?.split('\n').slice(1, 8).join('\n') : undefined,
    ...(cause !== undefined && depth < 4 && { cause: describe(cause, depth + 1) }),
  };
}
