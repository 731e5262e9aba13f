import { codedError } from '../errors.ts';
import type { Position } from './cursor.ts';
import type { FetchPage, Identified } from './page.ts';
import { walkBehind } from './resume.ts';
import { positionsOf } from './walk.ts';

/** A stretch of a list, each record with the position that its cursor is made from. */
export interface ConnectionSlice<R> {
  readonly edges: readonly { readonly record: R; readonly position: Position }[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  /** What came with its pages and belongs to no record. */
  readonly beside: readonly unknown[];
}

export interface ForwardOptions {
  /** Undefined: one page, as large as the node gives. */
  readonly first: number | undefined;
  /** Behind this record; null: from the start. */
  readonly position: Position | null;
  readonly signal: AbortSignal;
}

/**
 * Reads forward: exactly `first` records, over as many pages as that takes.
 *
 * `hasPreviousPage` is true whenever a cursor was given, without asking: the record of the cursor itself
 * came before (Relay's cursor connections specification leaves it to the server).
 */
export async function readForward<R extends Identified>(
  fetchPage: FetchPage<R>,
  { first, position, signal }: ForwardOptions,
): Promise<ConnectionSlice<R>> {
  const edges: { record: R; position: Position }[] = [];
  const beside: unknown[] = [];
  let hasNextPage = false;
  // `first: 0` still has to tell whether there is something: it looks at one record and gives none.
  const pages = walkBehind(fetchPage, position, {
    signal,
    ...(first === undefined ? { maxPages: 1 } : { limit: Math.max(first, 1) }),
  });
  for await (const page of pages) {
    edges.push(...positionsOf(page));
    beside.push(...(page.beside ?? []));
    hasNextPage = page.hasNextPage;
  }
  const wanted = first === undefined ? edges : edges.slice(0, first);
  return {
    edges: wanted,
    hasNextPage: hasNextPage || wanted.length < edges.length,
    hasPreviousPage: position !== null,
    beside,
  };
}

/**
 * The arguments of a connection, checked.
 *
 * @throws BAD_USER_INPUT
 */
export function checkedFirst(first: number | null | undefined, max: number): number | undefined {
  // Relay sends the variables of the other direction as null: a null is "not given".
  if (first === null || first === undefined) return undefined;
  return checkedCount('first', first, max);
}

/** @throws BAD_USER_INPUT */
export function checkedCount(name: string, count: number, max = Number.POSITIVE_INFINITY): number {
  if (count < 0) {
    throw codedError('BAD_USER_INPUT', `\`${name}\` must not be negative, but it is ${count}.`);
  }
  if (count > max) {
    throw codedError(
      'BAD_USER_INPUT',
      `\`${name}\` is at most ${max}, but it is ${count}. Read the rest with further pages, or drain the list with its \`all\` field.`,
    );
  }
  return count;
}
