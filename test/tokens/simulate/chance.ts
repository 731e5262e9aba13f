/** Numbers that look random and follow from a seed: for everything that a history leaves open. */
export interface Chance {
  /** From 0 to 1, without 1. */
  number(): number;
  /** A whole number, both ends included. */
  between(least: number, most: number): number;
}

/** @param seed any whole number */
export function chanceFrom(seed: number): Chance {
  let state = seed | 0;
  // Mulberry32.
  const number = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { number, between: (least, most) => least + Math.floor(number() * (most - least + 1)) };
}
