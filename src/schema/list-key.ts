/**
 * Names a list for its cursors: the upstream's field and the filters that were given. Null and absent
 * filters count as the same, since a Relay client sends an unused variable as null.
 */
export function listKey(field: string, filters: Record<string, unknown>): string {
  return `${field}${JSON.stringify(sorted(filters))}`;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Record<string, unknown>)
    .filter(([, inner]) => inner !== null && inner !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
