import fc from 'fast-check';

const { RANDOM_RUNS, RANDOM_SEED } = process.env;

/** Whether no seed is set: then the suite has the same result every time. */
export const isUsual = RANDOM_RUNS === undefined && RANDOM_SEED === undefined;

/** The seed of all random tests; `npm run fuzz` sets another one in each round. */
export const SEED = Number(RANDOM_SEED ?? 71);

/** How many random runs a test makes: `usual`, or RANDOM_RUNS, which can also be a part of it, such as `20%`. */
export function randomRuns(usual: number): number {
  if (RANDOM_RUNS?.endsWith('%')) return Math.ceil((usual * parseFloat(RANDOM_RUNS)) / 100);
  return Number(RANDOM_RUNS ?? usual);
}

/** How often something has to occur in the usual runs. Another seed may miss it, so 0 is enough there. */
export function usually(least: number): number {
  return isUsual ? least : 0;
}

fc.configureGlobal({ seed: SEED });
