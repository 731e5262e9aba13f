import { hash } from 'node:crypto';

type Filters = Readonly<Record<string, unknown>>;

/**
 * Names a list in its cursors: the upstream's field and the filters that were given, in 8 characters. Null and absent
 * filters count as the same, since a Relay client sends an unused variable as null.
 */
export function cursorKey(field: string, filters: Filters): string {
  const name = `${field}${JSON.stringify(sorted(filters, isNotNull))}`;
  return hash('sha256', name, 'base64url').slice(0, 8);
}

/**
 * Names a list for what is remembered of it and shared. Null and absent filters are two lists: the upstream
 * may tell them apart. Hashed, since callers decide how long their filters are.
 */
export function walkKey(field: string, filters: Filters): string {
  return hash('sha256', `${field}${JSON.stringify(sorted(filters, isThere))}`);
}

function sorted(value: unknown, isGiven: (value: unknown) => boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => sorted(item, isGiven));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Filters)
    .filter(([, inner]) => isGiven(inner))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner, isGiven)]));
}

function isNotNull(value: unknown): boolean {
  return value !== null && value !== undefined;
}

function isThere(value: unknown): boolean {
  return value !== undefined;
}
