const UNITS = [
  ['day', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const;

/** For people: the two largest units, such as "15 h 59 min". */
export function duration(seconds: number): string {
  let left = Math.floor(seconds);
  const parts = UNITS.flatMap(([name, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count > 0 ? [`${count} ${name === 'day' && count > 1 ? 'days' : name}`] : [];
  });
  return parts.slice(0, 2).join(' ') || '0 s';
}
