import { GraphQLError } from 'graphql';
import { codedError, knownCode, messageForCallers } from '../errors.ts';
import { causeOf, type Place } from './page.ts';
import type { WalkedPage, WalkedPages } from './walk.ts';

/** How many more records one operation may drain, in all its drains together. */
export interface DrainBudget {
  readonly max: number;
  left: number;
}

interface DrainOptions {
  /** The number of records to return; undefined: all. */
  readonly limit: number | undefined;
  readonly budget: DrainBudget;
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  /** Makes the `resumeAfter` of the errors. */
  readonly toCursor: (place: Place) => string;
}

/**
 * Yields the records of a walk page by page, up to the limit and the budget: `offsets` are those to return.
 *
 * @throws DRAIN_LIMIT_EXCEEDED, DRAIN_INTERRUPTED, DRAIN_STALLED, RATE_LIMITED or FORBIDDEN, each with `drained` and
 *   `resumeAfter`; the failure itself if it came before the first record, since there is nothing
 *   to resume
 */
export async function* drain<R>(
  pages: AsyncIterable<WalkedPage<R>>,
  { limit = Infinity, budget, signal, toCursor }: DrainOptions,
): WalkedPages<R> {
  if (limit === 0) return;
  let drained = 0;
  let end: Place | undefined;
  try {
    for await (const { page, offsets: all } of pages) {
      const wanted = Math.min(all.length, limit - drained);
      const count = Math.min(wanted, Math.max(0, budget.left));
      const offsets = all.slice(0, count);
      budget.left -= offsets.length;
      drained += offsets.length;
      end = endOf({ page, offsets }) ?? end;
      yield { page, offsets };
      if (count < wanted) throw limitExceeded(budget.max);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw drained === 0
      ? causeOf(error)
      : interrupted(error, { drained, resumeAfter: toCursor(end!) });
  }
}

/** Returns the place of the last record of a walked page; undefined if it has no new record. */
export function endOf({ page, offsets }: WalkedPage): Place | undefined {
  const offset = offsets.at(-1);
  return offset === undefined ? undefined : { page, offset };
}

interface DrainFacts {
  /** Records that were read. */
  readonly drained: number;
  /** The cursor of the last of them. */
  readonly resumeAfter: string;
}

export function limitExceeded(max: number): GraphQLError {
  return codedError(
    'DRAIN_LIMIT_EXCEEDED',
    `One operation may drain at most ${max} records, and there are more. ` +
      'Narrow the list by its filters or with `limit`, ' +
      'page through it with the connection, or have the operator raise DRAIN_MAX_ITEMS.',
    { extensions: { max } },
  );
}

/**
 * Returns the error of a drain that failed after its first records, with what is needed to resume it. An error of the
 * gateway, such as a stalled list or a budget that is used up, keeps its code.
 */
function interrupted(error: unknown, facts: DrainFacts): GraphQLError {
  const cause = causeOf(error);
  // The message of another error may contain details that callers must not see.
  const known = cause instanceof GraphQLError ? cause : undefined;
  const extensions = known?.extensions ?? {};
  const message = (because = '') =>
    `The drain ended after ${facts.drained} records${because}${known ? `: ${messageForCallers(known)}` : '.'} ` +
    // Resuming behind records that the caller never got would lose them silently.
    `A stream has delivered them; any other answer has none of them: read these with \`limit: ${facts.drained}\`. ` +
    'Go on behind them with `after` set to the resumeAfter of this error.';
  const code = cause === error ? knownCode(extensions['code']) : 'OTHER';
  if (code !== 'OTHER') {
    return codedError(code, message(), { extensions: { ...extensions, ...facts } });
  }
  const kept = Object.entries(extensions).filter(([name]) => KEPT.includes(name));
  const reason = extensions['code'] ?? null;
  return codedError('DRAIN_INTERRUPTED', message(', because a page could not be read'), {
    extensions: { ...Object.fromEntries(kept), ...facts, reason },
    cause,
  });
}

/** What stays of the error of a page: when to try again, the limit that was reached, and an error returned as data. */
const KEPT = ['retryAfter', 'limit', 'result'];
