import type { Clock } from '../clock.ts';

/** How many records lists have, known for a few seconds after they were counted. */
export interface Totals {
  of(list: string): number | undefined;
  counted(list: string, total: number): void;
}

const KNOWN_FOR_MS = 5_000;

export function createTotals(clock: Clock): Totals {
  const totals = new Map<string, { total: number; until: number }>();
  return {
    of: (list) => {
      const known = totals.get(list);
      return known && known.until > clock.elapsed() ? known.total : undefined;
    },
    counted: (list, total) => {
      const now = clock.elapsed();
      for (const [name, { until }] of totals) if (until <= now) totals.delete(name);
      totals.set(list, { total, until: now + KNOWN_FOR_MS });
    },
  };
}
