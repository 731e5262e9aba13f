import { GraphQLError } from 'graphql';
import { codedError, type ErrorCode, codeOf } from '../errors.ts';

/** The pages are not to be had for this operation, or not now. To ask for others instead will not help. */
export class PagesRefused extends GraphQLError {
  override name = 'PagesRefused';
}

export function refusal(
  code: ErrorCode,
  message: string,
  facts: Readonly<Record<string, unknown>> = {},
): PagesRefused {
  const { extensions } = codedError(code, message, { extensions: facts });
  return new PagesRefused(message, { extensions });
}

/** No fault of what was asked: whatever is asked next will probably fail as well. */
const OF_THE_SERVICE: readonly unknown[] = [
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_UNAUTHORIZED',
  'RATE_LIMITED',
  'TOKENS_MISSING',
  'TOKENS_LOST',
] satisfies ErrorCode[];

/** Some services answer so when a cursor does not suit them, and most when they are down. */
const OF_EITHER: unknown = 'UPSTREAM_BAD_RESPONSE' satisfies ErrorCode;

export function isOutage(error: unknown): boolean {
  return error instanceof PagesRefused || OF_THE_SERVICE.includes(codeOf(error));
}

export function mayBeOutage(error: unknown): boolean {
  return isOutage(error) || codeOf(error) === OF_EITHER;
}

/** Whether the failure of a page may be due to the cursor that it was asked with. Only another page can tell. */
export function mayBeRefusal(error: unknown, after: string | null, signal: AbortSignal): boolean {
  return after !== null && !signal.aborted && !isOutage(error);
}

/** Where a cursor points cannot be told any more. */
export function placeLost(cause?: unknown): GraphQLError {
  const said =
    cause instanceof GraphQLError ? ` The recruiting service said: ${cause.message}` : '';
  return codedError(
    'CURSOR_INVALID',
    'The list has changed since this cursor was given out: its record was not found any more, and nothing tells surely where it stood. ' +
      `Leave the cursor out to start anew.${said}`,
    { cause },
  );
}

/** Waits for what goes on, whoever leaves. @throws the reason of the signal, as soon as it is aborted */
export async function unlessAborted<T>(awaited: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: left, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason as Error);
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([awaited, left]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

/**
 * The reason of a walk, or of a request, that nobody waits for any more. Made once: a new one, with its stack, costs
 * more than the page that it ends.
 */
export const WALK_LEFT = new DOMException('Nobody waits for this walk any more.', 'AbortError');
