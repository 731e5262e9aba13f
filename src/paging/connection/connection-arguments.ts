import { codedError } from '../../errors.ts';

export interface ConnectionCounts {
  readonly first: number | undefined;
  readonly last: number | undefined;
}

/**
 * Checks the counts of a connection. Null is "not given": Relay sends the variables of the other direction as null.
 *
 * @param lastName the name of `last` in this list
 * @throws BAD_USER_INPUT; for both counts at once too, which the specification only discourages
 */
export function checkedCounts(
  first: unknown,
  last: unknown,
  { max, lastName }: { max: number; lastName: string },
): ConnectionCounts {
  const counts = {
    first: typeof first === 'number' ? checkedCount('first', first, max) : undefined,
    last: typeof last === 'number' ? checkedCount(lastName, last, max) : undefined,
  };
  if (counts.first !== undefined && counts.last !== undefined) {
    throw codedError(
      'BAD_USER_INPUT',
      `\`first\` and \`${lastName}\` cannot be given together: use \`first\` with \`after\` to page forward, \`${lastName}\` with \`before\` to page backward.`,
    );
  }
  return counts;
}

/** @throws BAD_USER_INPUT */
export function checkedCount(name: string, count: number, max = Number.POSITIVE_INFINITY): number {
  if (count < 0) {
    throw codedError('BAD_USER_INPUT', `\`${name}\` must not be negative, but it is ${count}.`);
  }
  if (count > max) {
    throw codedError(
      'BAD_USER_INPUT',
      `\`${name}\` is at most ${max}, but it is ${count}. Request further pages for the rest, or drain the list with its \`all\` field.`,
    );
  }
  return count;
}
