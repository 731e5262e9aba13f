import { expect, test } from 'vitest';
import { startFaultWorld } from '../support/tokens/fault-world.ts';
import { MORE_KILLS } from './kills.ts';

test.concurrent.each(MORE_KILLS)('kill -9 $title', async ({ happens, ...options }) => {
  await using world = await startFaultWorld(options);
  await expect(happens(world)).resolves.toBeUndefined();
});
