import { expect, test } from 'vitest';
import { startFaultWorld } from '../support/tokens/fault-world.ts';
import { KILLS } from './kills.ts';

test.concurrent.each(KILLS)('kill -9 $title', async ({ happens, ...options }) => {
  await using world = await startFaultWorld(options);
  await expect(happens(world)).resolves.toBeUndefined();
});
