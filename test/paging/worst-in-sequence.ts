import type { Change, ModelService } from './model-service.ts';

/**
 * The most records that a walk page by page can lose, over all moments at which the changes can happen, with pages of
 * the page limit, of the size that leaves an overlap, or of one record: the effect of a change depends on where pages
 * end. Only for lists whose ids are their serial numbers.
 */
export function worstInSequence(start: ModelService, changes: readonly Change[]): number | 'fails' {
  let worst = 0;
  let canFail = false;
  const visit = (service: ModelService, left: readonly Change[], before: Visited) => {
    if (left.length > 0) {
      const changed = service.copy();
      changed.apply(left[0]!);
      visit(changed, left.slice(1), before);
    }
    const page = pageOf(service, before);
    const seen = (page?.records ?? []).reduce((mask, serial) => mask | bitOf(serial), before.seen);
    const cursor = page?.endCursor ?? null;
    const isStuck = page?.hasNextPage && before.cursors.has(cursor) && seen === before.seen;
    if (!page || isStuck) {
      canFail = true;
      return;
    }
    if (page.hasNextPage) {
      const isKnown = before.cursors.has(cursor);
      before.cursors.add(cursor);
      visit(service, left, { ...before, after: cursor, seen });
      if (!isKnown) before.cursors.delete(cursor);
      return;
    }
    const end = service.copy();
    for (const each of left) end.apply(each);
    const lost = end.stillSince(start.changes).filter((serial) => !(seen & bitOf(serial)));
    worst = Math.max(worst, lost.length);
  };
  for (const size of new Set([start.limit, start.limit - 2, 1])) {
    if (size > 0) visit(start, changes, { after: null, seen: 0n, cursors: new Set(), size });
  }
  return canFail ? 'fails' : worst;
}

interface Visited {
  after: string | null;
  /** A bit for each record. */
  seen: bigint;
  cursors: Set<string | null>;
  size: number;
}

function bitOf(serial: number): bigint {
  return 1n << BigInt(serial);
}

function pageOf(service: ModelService, { after, size }: Visited) {
  try {
    return service.page(after, size);
  } catch {
    return undefined;
  }
}
