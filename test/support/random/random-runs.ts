import fc from 'fast-check';

const { RANDOM_RUNS, RANDOM_SEED } = process.env;

/** Whether no seed is set: then the suite has the same result every time. */
const isUsual = RANDOM_RUNS === undefined && RANDOM_SEED === undefined;

/** The seed of all random tests. RANDOM_SEED sets another one. */
export const SEED = Number(RANDOM_SEED ?? 71);

/** The part of `most` that the suite runs: `RANDOM_RUNS=100% npm test` runs all. */
const PART = 0.15;

/** How many random runs a test makes. RANDOM_RUNS sets another part of `most`, such as `10%`. */
export function randomRuns(most: number): number {
  const part = RANDOM_RUNS === undefined ? PART : parseFloat(RANDOM_RUNS) / 100;
  return Math.ceil(most * part);
}

/** How often something has to occur in the runs of the suite, of `least` in all. Another seed may miss it. */
export function usually(least: number): number {
  return isUsual ? Math.ceil(least * PART) : 0;
}

fc.configureGlobal({ seed: SEED });
