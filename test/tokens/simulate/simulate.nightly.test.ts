import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { brokenPromise } from './history.ts';

// From another seed every night, which the error has.
test('20,000 histories of replicas break no promise', { timeout: 1_200_000 }, async () => {
  expect(await brokenPromise({ seed: randomInt(2 ** 30), numRuns: 20_000 })).toBeUndefined();
});
