import { expect, test } from 'vitest';
import { randomRuns, SEED } from '../support/random/random-runs.ts';
import { walkAtRandom } from './random-walks.ts';

test('a list that stands still is returned exactly, and of one that changes no more is lost than in sequence', async () => {
  const { wrong, walks } = await walkAtRandom(randomRuns(5_000), SEED);
  expect(wrong).toEqual([]);
  expect(walks).toBeGreaterThan(0);
});
