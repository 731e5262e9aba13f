import { expect, test } from 'vitest';
import { readAtRandom } from './random-reading.ts';

test(
  'in none of 10,000 random histories a reader gets what it may not see',
  { timeout: 600_000 },
  async () => {
    // Other histories every night; a failure says its seed.
    const seed = Math.floor(Math.random() * 1_000_000_000);
    await expect(readAtRandom(10_000, seed)).resolves.toBeUndefined();
  },
);
