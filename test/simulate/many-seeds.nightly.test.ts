import { expect, test } from 'vitest';
import { startProcess } from '../support/processes/process.ts';

// From other seeds every night. The output of a failure says how to replay it.
test('10,000 histories of replicas break no promise, and meet every row of faults', async () => {
  const { code, stdout } = await startProcess([
    '--max-semi-space-size=64',
    '--import=./test/simulate/hooks.ts',
    'test/simulate/run.ts',
    '--seeds=10000',
  ]).ended;
  expect(stdout).toMatch(/^10000 histories from seed \d+, no promise broken$/m);
  expect(stdout).not.toContain('Met less than');
  expect(code).toBe(0);
}, 1_200_000);
