import { GraphQLError } from 'graphql';
import { codedError, codeOf, type ErrorCode } from '../errors.ts';
import type { Position } from './place/cursor.ts';
import type { Identified } from './page.ts';
import { PagesRefused } from './price/pages-refused.ts';
import { positionOf, type WalkedPage } from './walk.ts';

/** How many records one operation may still drain, all its drains together. */
export interface DrainBudget {
  readonly max: number;
  left: number;
}

export interface DrainOptions {
  /** Records wanted; undefined: all. */
  readonly limit: number | undefined;
  /** The walk begins behind this record; null: at the start. */
  readonly position: Position | null;
  readonly budget: DrainBudget;
  readonly signal: AbortSignal;
  /** Makes the `resumeAfter` of the errors. */
  readonly toCursor: (position: Position) => string;
  /** Of a part nothing is given: then there is nothing to go on from, when pages are refused. */
  readonly isWholeOnly?: boolean;
}

/** The records of one page that a drain gives. */
export interface DrainedPage<R> {
  readonly page: WalkedPage<R>;
  readonly records: WalkedPage<R>['records'];
  readonly hasNextPage: boolean;
  /** What came with the page and belongs to no record. */
  readonly beside: readonly unknown[];
}

/**
 * Gives a walk's records page by page, as many as are wanted and allowed.
 *
 * @param pages a walk that begins behind `position`
 * @throws DRAIN_LIMIT_EXCEEDED, DRAIN_INTERRUPTED, DRAIN_STALLED, or what pages are refused with, each with
 *   `drained` and `resumeAfter`; the failure itself when it came before the first record, since then nothing is
 *   left to resume
 */
export async function* drainPages<R extends Identified>(
  pages: AsyncIterable<WalkedPage<R>>,
  { limit, position, budget, signal, toCursor, isWholeOnly = false }: DrainOptions,
): AsyncGenerator<DrainedPage<R>, void, undefined> {
  if (limit === 0) return;
  let drained = 0;
  let last: Position | null = position;
  const facts = () => ({ drained, resumeAfter: last && toCursor(last) });
  try {
    for await (const page of pages) {
      const { hasNextPage, beside = [] } = page;
      const { records: all } = page;
      const left = limit === undefined ? all.length : limit - drained;
      const wanted = left < all.length ? all.slice(0, left) : all;
      const allowed = Math.max(0, budget.left);
      const records = allowed < wanted.length ? wanted.slice(0, allowed) : wanted;
      budget.left -= records.length;
      drained += records.length;
      const [end] = records.slice(-1);
      if (end) last = positionOf(page, end);
      yield { page, records, hasNextPage, beside };
      if (records.length < wanted.length) throw limitExceeded(budget, facts());
      if (drained === limit) return;
    }
  } catch (error) {
    if (signal.aborted || drained === 0 || codeOf(error) === 'DRAIN_LIMIT_EXCEEDED') throw error;
    if (isWholeOnly && error instanceof PagesRefused) throw error;
    throw interrupted(error, facts());
  }
}

export interface Facts {
  /** Records given. */
  readonly drained: number;
  /** Cursor of the last one of them. */
  readonly resumeAfter: string | null;
}

function limitExceeded({ max }: DrainBudget, facts: Facts): GraphQLError {
  return codedError(
    'DRAIN_LIMIT_EXCEEDED',
    `One operation may drain at most ${max} records, and there are more. Narrow the list by its filters or with \`limit\`, ` +
      'page through it with the connection, or have the operator raise DRAIN_MAX_ITEMS.',
    { extensions: { ...facts, max } },
  );
}

/** A reading that ended in the middle, for whoever is to go on from there. */
export function interrupted(error: unknown, facts: Facts): GraphQLError {
  if (error instanceof PagesRefused) {
    const { message: why, extensions: its } = error;
    return codedError(
      its['code'] as ErrorCode,
      `The drain ended after ${facts.drained} records: ${why} Go on from there with \`after\` set to the resumeAfter of this error.`,
      { extensions: { ...its, ...facts } },
    );
  }
  const { message, extensions } = error instanceof GraphQLError ? error : {};
  if (message !== undefined && extensions?.['code'] === 'DRAIN_STALLED') {
    return codedError('DRAIN_STALLED', message, { extensions: { ...facts } });
  }
  // The message of anything but a GraphQL error may hold what callers shall not see.
  return codedError(
    'DRAIN_INTERRUPTED',
    `The drain ended after ${facts.drained} records, because a page could not be read${message ? `: ${message}` : '.'} ` +
      'Go on from there with `after` set to the resumeAfter of this error.',
    { extensions: { ...facts, reason: extensions?.['code'] ?? null }, cause: error },
  );
}
