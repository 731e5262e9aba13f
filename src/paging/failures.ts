import { GraphQLError } from 'graphql';
import { codedError, codeOf, means, type ErrorCode } from '../errors.ts';

/** The operation may not request these pages, or not now. Requesting other pages does not help. */
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

/** Some services answer like this to a cursor that they refuse, and most do when they are down. */
const OUTAGE_OR_REFUSAL: unknown = 'UPSTREAM_BAD_RESPONSE' satisfies ErrorCode;

/** Whether a failure is not caused by the request: the next request will probably fail as well. */
export function isOutage(error: unknown): boolean {
  return error instanceof PagesRefused || means(codeOf(error), 'outage');
}

/** Pages that may fail in a row before no more are requested: the service is probably down. */
const MAX_FAILURES = 3;

/** Detects from pages that are read concurrently or in sequence that the service is probably down. */
export class OutageDetector {
  #failures = 0;
  #last: unknown;

  /** The last failure, if the service is probably down; otherwise undefined. */
  get outage(): { readonly error: unknown } | undefined {
    return this.#failures >= MAX_FAILURES ? { error: this.#last } : undefined;
  }

  /** Counts the success or failure of a page. */
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

/** Whether the service may have refused the cursor of the request. Only a request for another page can tell. */
export function mayBeRefusal(error: unknown, after: string | null, signal: AbortSignal): boolean {
  return after !== null && !signal.aborted && !isOutage(error);
}

/** Whether a page may have failed because of its records' selection: then their identities can still be read. */
export function mayBeOfRecords(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted || codeOf(error) === 'DRAIN_LIMIT_EXCEEDED') return false;
  // A drain's error has the failure that interrupted it as its cause.
  return !isOutage(error) && !isOutage((error as Error).cause);
}

/** The error for a cursor whose record is gone, when its former position is unknown too. */
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
 * The abort reason of a walk or request without readers. Created once: a new error with its stack would cost more than
 * the page that it ends.
 */
export const WALK_LEFT = new DOMException('This walk has no reader left.', 'AbortError');
