import { test } from 'vitest';
import { randomRuns } from '../../support/random/random-runs.ts';
import { expectNoBrokenPromise } from './check.ts';

test('histories of replicas that share one token set break no promise', () =>
  expectNoBrokenPromise({ numRuns: randomRuns(2_000) }));
