import { expect, test } from 'vitest';
import { walkAtRandom } from './random-walks.ts';

test('none of 100,000 random walks is wrong', { timeout: 600_000 }, async () => {
  // Other walks every night; a failure says its seed. Each list is walked four times on average.
  const seed = Math.floor(Math.random() * 1_000_000_000);
  await expect(walkAtRandom(25_000, seed)).resolves.toBeUndefined();
});
