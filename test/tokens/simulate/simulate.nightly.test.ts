import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { firstFailure } from './check.ts';

// From other seeds every night. A failure has its seed, and the command that replays it.
test('20,000 histories of replicas break no promise', { timeout: 1_200_000 }, async () => {
  expect(await firstFailure(randomInt(2 ** 30), 20_000)).toBeUndefined();
});
