import type { PageIndex } from '../parallel/page-index.ts';
import { pageOf } from '../parallel/page-index.ts';
import type { Position } from '../place/cursor.ts';

/** Pages that a walk is going to read at least, as far as the last one of the list tells; 0 where nothing does. */
export function pagesKnown(
  index: PageIndex | undefined,
  {
    position,
    limit,
    tail,
  }: { position: Position | null; limit: number | undefined; tail?: unknown },
): number {
  if (!index || tail) return 0;
  const start =
    position === null
      ? 0
      : position.identity === null
        ? undefined
        : pageOf(index, position.identity);
  if (start === undefined) return 0;
  let pages = 0;
  let records = 0;
  for (const { count } of index.pages.slice(start)) {
    if (limit !== undefined && records >= limit) break;
    pages += 1;
    records += count;
  }
  return pages;
}
