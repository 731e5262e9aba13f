import fc from 'fast-check';

const { RANDOM_RUNS, RANDOM_SEED } = process.env;

/** Whether no seed is set: then the suite has the same result every time. */
export const isUsual = RANDOM_RUNS === undefined && RANDOM_SEED === undefined;

/** The seed of all random tests; `npm run fuzz` sets another one in each round. */
export const SEED = Number(RANDOM_SEED ?? 71);

/** The part of a fuzz round that the suite runs: with its fixed seed, more cases would find nothing new. */
const PART = 0.4;

/** How many random runs a test makes: `round` in a round of `npm run fuzz`. RANDOM_RUNS sets another number or `20%`. */
export function randomRuns(round: number): number {
  if (RANDOM_RUNS?.endsWith('%')) return Math.ceil((round * parseFloat(RANDOM_RUNS)) / 100);
  return Number(RANDOM_RUNS ?? (isUsual ? Math.ceil(round * PART) : round));
}

/** How often something has to occur in the runs of the suite, of `least` in a round. Another seed may miss it. */
export function usually(least: number): number {
  return isUsual ? Math.ceil(least * PART) : 0;
}

fc.configureGlobal({ seed: SEED });
