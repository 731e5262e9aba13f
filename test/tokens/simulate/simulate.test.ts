import { expect, test } from 'vitest';
import { randomRuns } from '../../support/random/random-runs.ts';
import { brokenPromise } from './history.ts';

test('histories of replicas that share one token set break no promise', async () => {
  expect(await brokenPromise({ numRuns: randomRuns(2_000) })).toBeUndefined();
});
