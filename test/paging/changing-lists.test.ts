import { expect, test } from 'vitest';
import { randomRuns } from '../support/random/random-runs.ts';
import { readAtRandom } from './random-reading.ts';

test('in any history of a list, drains, connections, lookups and totals have the records that they promise', async () => {
  await expect(readAtRandom(randomRuns(3_200))).resolves.toBeUndefined();
});
