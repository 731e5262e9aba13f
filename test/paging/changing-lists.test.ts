import { expect, test } from 'vitest';
import { randomRuns } from '../support/random/random-runs.ts';
import { readAtRandom } from './random-reading.ts';

test('in any history of a list, drains, connections, lookups and totals have the records that they promise', async () => {
  await expect(readAtRandom(randomRuns(4_000))).resolves.toBeUndefined();
});
