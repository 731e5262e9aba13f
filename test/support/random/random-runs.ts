import fc from 'fast-check';

const { RANDOM_RUNS, RANDOM_SEED } = process.env;

/** Whether nothing was asked for: the suite gives the same result every time then. */
export const isUsual = RANDOM_RUNS === undefined && RANDOM_SEED === undefined;

/** What all random tests start from; `npm run fuzz` gives another one in each round. */
export const SEED = Number(RANDOM_SEED ?? 71);

/** How many random runs a test makes: `usual`, or RANDOM_RUNS. */
export function randomRuns(usual: number): number {
  return Number(RANDOM_RUNS ?? usual);
}

fc.configureGlobal({ seed: SEED });
