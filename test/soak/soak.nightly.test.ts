import { expect, test } from 'vitest';
import { startProcess } from '../support/processes/process.ts';

test('a gateway under load, faults and floods does not grow, answers probes at once, and keeps the newest pair', async () => {
  const { code, stdout } = await startProcess(['test/soak/run.ts']).ended;
  expect(stdout).toContain('holds  nothing grows');
  expect(stdout).not.toContain('does not hold');
  expect(code).toBe(0);
}, 1_200_000);
