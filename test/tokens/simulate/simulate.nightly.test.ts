import { randomInt } from 'node:crypto';
import { test } from 'vitest';
import { expectNoBrokenPromise } from './check.ts';

// From another seed every night, which the error has.
test('20,000 histories of replicas break no promise', { timeout: 1_200_000 }, () =>
  expectNoBrokenPromise({ seed: randomInt(2 ** 30), numRuns: 20_000 }));
