import { GraphQLError } from 'graphql';
import { codedError, codeOf, means, type ErrorCode } from '../errors.ts';

/** The operation may not request these pages, or not now. Requesting other pages instead does not help. */
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

/** Some services answer so to a cursor that they refuse, and most when they are down. */
const OUTAGE_OR_REFUSAL: unknown = 'UPSTREAM_BAD_RESPONSE' satisfies ErrorCode;

/** Whether a failure is not due to the request: the next one will probably fail as well. */
export function isOutage(error: unknown): boolean {
  return error instanceof PagesRefused || means(codeOf(error), 'outage');
}

/** Pages that fail in a row until no further one is requested: the service is probably down. */
const MAX_FAILURES = 3;

/** Detects that the service is probably down, from the pages that are read at the same time or one after another. */
export class OutageDetector {
  #failures = 0;
  #last: unknown;

  /** The last failure, if the service is probably down. */
  get outage(): { readonly error: unknown } | undefined {
    return this.#failures >= MAX_FAILURES ? { error: this.#last } : undefined;
  }

  /** Counts a page. */
  async count<T>(page: Promise<T>): Promise<T> {
    try {
      const fetched = await page;
      this.#failures = 0;
      return fetched;
    } catch (error) {
      // A service that refuses a cursor is not down.
      const mayBeOutage = isOutage(error) || codeOf(error) === OUTAGE_OR_REFUSAL;
      this.#failures = mayBeOutage ? this.#failures + 1 : 0;
      this.#last = error;
      throw error;
    }
  }
}

/** Whether the service may have refused the cursor of the request. Only the request of another page can tell. */
export function mayBeRefusal(error: unknown, after: string | null, signal: AbortSignal): boolean {
  return after !== null && !signal.aborted && !isOutage(error);
}

/** Whether a page may have failed because of what is selected of its records: then their identities can be read. */
export function mayBeOfRecords(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted || codeOf(error) === 'DRAIN_LIMIT_EXCEEDED') return false;
  // What interrupted a drain is the cause of its error.
  return !isOutage(error) && !isOutage((error as Error).cause);
}

/** The record of a cursor is gone, and where it stood is unknown. */
export function cursorLost(cause?: unknown): GraphQLError {
  const said =
    cause instanceof GraphQLError ? ` The recruiting service answered: ${cause.message}` : '';
  return codedError(
    'CURSOR_INVALID',
    'The list has changed since this cursor was issued: its record was not found, and its former position is unknown. ' +
      `Omit the cursor to start anew.${said}`,
    { cause },
  );
}

/**
 * The reason of a walk or a request that has no reader left. Made once: a new one, with its stack, costs more than
 * the page that it ends.
 */
export const WALK_LEFT = new DOMException('This walk has no reader left.', 'AbortError');
