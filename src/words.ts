/** Returns the nearest of these words, if it differs by at most two letters. */
export function nearestWord(word: string, words: readonly string[]): string | undefined {
  const [nearest] = words
    .map((other) => ({ other, away: distance(word, other) }))
    .filter(({ other, away }) => away <= 2 && away < other.length / 2)
    .toSorted((a, b) => a.away - b.away);
  return nearest?.other;
}

/** Returns the Levenshtein distance, computed row by row. */
export function distance(word: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 0; i < word.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j += 1) {
      const replaced = row[j]! + (word[i] === other[j] ? 0 : 1);
      next.push(Math.min(replaced, row[j + 1]! + 1, next[j]! + 1));
    }
    row = next;
  }
  return row.at(-1)!;
}
