/** Whether a value of JSON has lists and objects inside of each other on more levels than these. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    if (isDeeperThan(levels - 1, inner)) return true;
  }
  return false;
}
