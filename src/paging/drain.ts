import { GraphQLError } from 'graphql';
import { codedError, codeOf, messageForCallers, type ErrorCode } from '../errors.ts';
import type { Position } from './cursor.ts';
import { PagesRefused } from './failures.ts';
import type { Identified, PageRecords } from './page.ts';
import { positionOf, type WalkedPage } from './walk.ts';

/** How many more records one operation may drain, in all its drains together. */
export interface DrainBudget {
  readonly max: number;
  left: number;
}

interface DrainOptions {
  /** Records to return; undefined: all. */
  readonly limit: number | undefined;
  /** The record behind which the walk begins; null: the start of the list. */
  readonly position: Position | null;
  readonly budget: DrainBudget;
  readonly signal: AbortSignal;
  /** Makes the `resumeAfter` of the errors. */
  readonly toCursor: (position: Position) => string;
  readonly delivered: Delivered;
}

/**
 * What the caller gets of an interrupted drain: the records before the failure (`parts`); no records, but it can read
 * them again in two parts (`whole`); or no records, where a part would be useless, as for a count (`result`).
 */
type Delivered = 'parts' | 'whole' | 'result';

/** The records of one page that a drain yields. */
export interface DrainedPage<R> {
  readonly page: WalkedPage<R>;
  readonly records: PageRecords<R>;
  readonly hasNextPage: boolean;
  readonly unplacedErrors: readonly unknown[];
}

/**
 * Yields the records of a walk page by page, up to the limit and the budget.
 *
 * @param pages a walk that begins behind `position`
 * @throws DRAIN_LIMIT_EXCEEDED, DRAIN_INTERRUPTED, DRAIN_STALLED or PagesRefused, each with `drained` and, where parts
 *   are useful, `resumeAfter`; the failure itself if it came before the first record, since there is nothing to resume
 */
export async function* drainPages<R extends Identified>(
  pages: AsyncIterable<WalkedPage<R>>,
  { limit, position, budget, signal, toCursor, delivered }: DrainOptions,
): AsyncGenerator<DrainedPage<R>, void, undefined> {
  if (limit === 0) return;
  let drained = 0;
  let last: DrainedPage<R> | undefined;
  const facts = (): DrainFacts => {
    const end = last?.records.list.at(-1);
    const at = last && end ? positionOf(last.page, end) : position;
    return { drained, resumeAfter: delivered === 'result' ? null : at && toCursor(at), delivered };
  };
  try {
    for await (const page of pages) {
      const { hasNextPage, unplacedErrors = [], records: all } = page;
      const left = limit === undefined ? all.length : limit - drained;
      const limited = all.first(left);
      const records = limited.first(Math.max(0, budget.left));
      budget.left -= records.length;
      drained += records.length;
      const part = { page, records, hasNextPage, unplacedErrors };
      if (records.length > 0) last = part;
      yield part;
      if (records.length < limited.length) throw limitExceeded(budget, facts());
      if (drained === limit) return;
    }
  } catch (error) {
    // The records are not used, and another walk may follow.
    if (delivered === 'result') budget.left += drained;
    if (signal.aborted || drained === 0 || codeOf(error) === 'DRAIN_LIMIT_EXCEEDED') throw error;
    if (delivered === 'result' && error instanceof PagesRefused) throw error;
    throw interrupted(error, facts());
  }
}

interface DrainFacts {
  /** Records that were read. */
  readonly drained: number;
  /** The cursor of the last of them. */
  readonly resumeAfter: string | null;
  readonly delivered: Delivered;
}

function limitExceeded({ max }: DrainBudget, { delivered, ...facts }: DrainFacts): GraphQLError {
  return codedError(
    'DRAIN_LIMIT_EXCEEDED',
    `One operation may drain at most ${max} records, and there are more. ${IN_THE_ANSWER[delivered]}` +
      'Narrow the list by its filters or with `limit`, ' +
      'page through it with the connection, or have the operator raise DRAIN_MAX_ITEMS.',
    { extensions: { ...facts, max } },
  );
}

const IN_THE_ANSWER: Readonly<Record<Delivered, string>> = {
  parts: 'The records before this error are valid. ',
  whole: 'None of them is in this answer. ',
  result: '',
};

/** Returns the error of a read that failed after its first records, with the facts needed to resume it. */
export function interrupted(error: unknown, facts: DrainFacts): GraphQLError {
  const { delivered, ...extended } = facts;
  const ended = `The drain ended after ${facts.drained} records`;
  if (error instanceof PagesRefused) {
    const { message: why, extensions: reason } = error;
    return codedError(reason['code'] as ErrorCode, `${ended}: ${why} ${nextSteps(facts)}`, {
      extensions: { ...reason, ...extended },
    });
  }
  const extensions = error instanceof GraphQLError ? error.extensions : undefined;
  const message = error instanceof GraphQLError ? messageForCallers(error) : undefined;
  if (message !== undefined && extensions?.['code'] === 'DRAIN_STALLED') {
    return codedError(
      'DRAIN_STALLED',
      `${message} ${ended}. ${IN_THE_ANSWER[delivered]}`.trimEnd(),
      {
        extensions: extended,
      },
    );
  }
  // The message of an error that is not a GraphQL error may contain details that callers must not see.
  return codedError(
    'DRAIN_INTERRUPTED',
    `${ended}, because a page could not be read${message ? `: ${message}` : '.'} ${nextSteps(facts)}`,
    {
      extensions: {
        ...extended,
        reason: extensions?.['code'] ?? null,
        ...(extensions?.['result'] !== undefined && { result: extensions['result'] }),
      },
      cause: error,
    },
  );
}

/** Says what the caller can do now. Resuming behind records that the caller never got would lose them silently. */
function nextSteps({ delivered, drained }: DrainFacts): string {
  switch (delivered) {
    case 'parts':
      return `${IN_THE_ANSWER.parts}Go on behind them with \`after\` set to the resumeAfter of this error.`;
    case 'whole':
      return (
        `${IN_THE_ANSWER.whole}Send the operation again; or read these records with \`limit: ${drained}\`, ` +
        'and those behind them with `after` set to the resumeAfter of this error; or stream the list, which keeps what came.'
      );
    case 'result':
      return 'Send the operation again.';
  }
}
