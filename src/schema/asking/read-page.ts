import type { Identified, Page } from '../../paging/page.ts';
import type { IdentitySelection } from './identity-selection.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';

/** One element of a page as it came, once for each place of the operation that shows records. */
export interface UpstreamRecord extends Identified {
  readonly shapes: readonly UpstreamValue[];
}

export interface ReadPage {
  /** Undefined when what came is no page. */
  readonly page: Page<UpstreamRecord> | undefined;
  /** The errors that stand at no record of it. */
  readonly beside: readonly UpstreamError[];
}

/**
 * Reads the answer to the request for a page, and gives each record its own errors.
 *
 * @param aliases the names of the page's lists of records, one for each place that shows records
 * @param ifNull what a list stands for that is null
 */
export function readPage(
  answer: UpstreamValue,
  aliases: readonly string[],
  identity: IdentitySelection,
  ifNull: readonly unknown[] | undefined,
): ReadPage {
  const container = answer.value as Record<string, unknown> | null;
  const lists = aliases.map((alias) => container?.[alias] ?? (container ? ifNull : undefined));
  const pageInfo = (container?.['pageInfo'] ?? {}) as Record<string, unknown>;
  const { hasNextPage, endCursor, first } = pageInfo;
  if (!lists.every(Array.isArray) || typeof hasNextPage !== 'boolean') {
    return { page: undefined, beside: answer.errors };
  }
  const { byRecord, beside } = sortErrors(answer.errors, aliases);
  const items = (lists[0] ?? []).map((record: unknown, place) => ({
    identity: identity.identityOf(record),
    shapes: lists.map((list, shape) => ({
      value: list[place] ?? null,
      errors: byRecord.get(`${shape}.${place}`) ?? [],
    })),
  }));
  const limit = typeof first === 'number' && first > 0 ? first : undefined;
  return { page: { items, hasNextPage, endCursor: cursorFrom(endCursor), limit }, beside };
}

function cursorFrom(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null;
}

function sortErrors(errors: readonly UpstreamError[], aliases: readonly string[]) {
  const byRecord = new Map<string, UpstreamError[]>();
  const beside: UpstreamError[] = [];
  for (const error of errors) {
    const [alias, place, ...path] = error.path;
    const shape = aliases.indexOf(String(alias));
    const key = `${shape}.${place}`;
    const there = byRecord.get(key);
    if (shape < 0 || place === undefined) beside.push(error);
    else if (there) there.push({ ...error, path });
    else byRecord.set(key, [{ ...error, path }]);
  }
  return { byRecord, beside };
}
