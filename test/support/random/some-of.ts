import { randomRuns } from './random-runs.ts';

/**
 * Returns all of these cases, or with RANDOM_RUNS such as `10%` that part of them and at least one, evenly spread.
 *
 * @param from the index of the first case, so that tests do not all use the same cases
 */
export function someOf<T>(cases: readonly T[], from = 0): T[] {
  const count = Math.min(cases.length, randomRuns(cases.length));
  return Array.from(
    { length: count },
    (_, at) => cases[(from + Math.floor((at * cases.length) / count)) % cases.length]!,
  );
}
