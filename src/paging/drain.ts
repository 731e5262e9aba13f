import { GraphQLError } from 'graphql';
import { codedError, codeOf } from '../errors.ts';
import type { Position } from './cursor.ts';
import type { FetchPage, Identified } from './page.ts';
import { walkBehind } from './resume.ts';

/** How many records one operation may still drain, all its drains together. */
export interface DrainBudget {
  readonly max: number;
  left: number;
}

export interface DrainOptions {
  /** Records wanted; undefined: all. */
  readonly limit: number | undefined;
  /** Begin behind this record; null: at the start. */
  readonly position: Position | null;
  readonly budget: DrainBudget;
  readonly signal: AbortSignal;
  /** Makes the `resumeAfter` of the errors. */
  readonly toCursor: (position: Position) => string;
}

/**
 * Reads a list to its end, each record once and in order.
 *
 * @throws DRAIN_LIMIT_EXCEEDED, DRAIN_INTERRUPTED, DRAIN_STALLED, each with `drained` and `resumeAfter`;
 *   the failure itself when it came before the first record, since then nothing is left to resume
 */
export async function drain<R extends Identified>(
  fetchPage: FetchPage<R>,
  { limit, position, budget, signal, toCursor }: DrainOptions,
): Promise<R[]> {
  if (limit === 0) return [];
  const drained: R[] = [];
  let last: Position | null = position;
  const facts = () => ({ drained: drained.length, resumeAfter: last && toCursor(last) });
  try {
    const pages = walkBehind(fetchPage, position, {
      signal,
      ...(limit !== undefined && { limit }),
    });
    for await (const { records, after, endCursor, size } of pages) {
      for (const { record, place } of records) {
        if (limit !== undefined && drained.length >= limit) return drained;
        if (budget.left <= 0) throw limitExceeded(budget, facts());
        budget.left -= 1;
        drained.push(record);
        last = { after, end: endCursor, size, place, identity: record.identity };
      }
    }
    return drained;
  } catch (error) {
    if (signal.aborted || drained.length === 0 || codeOf(error) === 'DRAIN_LIMIT_EXCEEDED') {
      throw error;
    }
    throw interrupted(error, facts());
  }
}

interface Facts {
  drained: number;
  resumeAfter: string | null;
}

function limitExceeded({ max }: DrainBudget, facts: Facts): GraphQLError {
  return codedError(
    'DRAIN_LIMIT_EXCEEDED',
    `One operation may drain at most ${max} records, and there are more. Narrow the list by its filters or with \`limit\`, ` +
      'page through it with the connection, or have the operator raise DRAIN_MAX_ITEMS.',
    { extensions: { ...facts, max } },
  );
}

function interrupted(error: unknown, facts: Facts): GraphQLError {
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
