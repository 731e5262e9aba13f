import { codeOf, type ErrorCode } from '../errors.ts';
import { PagesRefused } from './price/pages-refused.ts';

/** No fault of what was asked: whatever is asked next will probably fail as well. */
const OF_THE_SERVICE: readonly unknown[] = [
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_UNAUTHORIZED',
  'RATE_LIMITED',
  'TOKENS_MISSING',
  'TOKENS_LOST',
  // The token store fails.
  'INTERNAL_SERVER_ERROR',
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
