import fc from 'fast-check';

const { RANDOM_RUNS, RANDOM_SEED } = process.env;

/** The part of `most` that the suite runs: `RANDOM_RUNS=100% npm test` runs all. */
const PART = 0.15;

/** How many random runs a test makes. RANDOM_RUNS sets another part of `most`, such as `10%`. */
export function randomRuns(most: number): number {
  const part = RANDOM_RUNS === undefined ? PART : parseFloat(RANDOM_RUNS) / 100;
  return Math.ceil(most * part);
}

// All random tests have one seed. RANDOM_SEED sets another one.
fc.configureGlobal({ seed: Number(RANDOM_SEED ?? 71) });
