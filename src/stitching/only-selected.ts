import type { Keys } from './private-keys.ts';

/**
 * Returns what was selected of the `data` of another service, and nothing else: what it returns beyond that would take
 * the place of what the recruiting service has said about the same record.
 */
export function onlySelected(value: unknown, keys: Keys): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => onlySelected(each, keys));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    const key = keys.get(name);
    if (!key) return [];
    return [[name, key.leaf === undefined ? onlySelected(member, key.below) : member] as const];
  });
  return Object.fromEntries(entries);
}
