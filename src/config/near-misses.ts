/** A variable that is read nowhere, and the setting that was probably meant. */
export interface NearMiss {
  readonly name: string;
  readonly meant: string;
}

/**
 * Variables that are read nowhere, and differ by a slip from a setting that is not set. Only long names count: `HOSTS`
 * or `PORTS` may well be there for another program.
 */
export function nearMisses(
  given: Readonly<Record<string, string>>,
  known: readonly string[],
): NearMiss[] {
  const missing = known.filter((name) => name.includes('_') && given[name] === undefined);
  return Object.keys(given)
    .filter((name) => !known.includes(name))
    .flatMap((name) => {
      const meant = missing.find((other) => isNear(name.toUpperCase(), other));
      return meant === undefined ? [] : [{ name, meant }];
    });
}

/** Up to two wrong, missing or needless letters, or the last word forgotten. */
function isNear(name: string, known: string): boolean {
  const words = name.split('_');
  if (words.length < 2 || Math.abs(name.length - known.length) > 12) return false;
  if (known.startsWith(`${name}_`)) return known.split('_').length === words.length + 1;
  return Math.abs(name.length - known.length) <= 2 && distance(name, known) <= 2;
}

/** The word of these that is at most two letters away, the nearest of several. */
export function nearestWord(word: string, words: readonly string[]): string | undefined {
  const [nearest] = words
    .map((other) => ({ other, away: distance(word, other) }))
    .filter(({ other, away }) => away <= 2 && away < other.length / 2)
    .toSorted((a, b) => a.away - b.away);
  return nearest?.other;
}

/** Of Levenshtein, row by row. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j += 1) {
      const replaced = row[j]! + (one[i] === other[j] ? 0 : 1);
      next.push(Math.min(replaced, row[j + 1]! + 1, next[j]! + 1));
    }
    row = next;
  }
  return row.at(-1)!;
}
