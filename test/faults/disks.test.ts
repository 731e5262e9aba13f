/**
 * Disks that are full and folders that cannot be written, before and during an exchange. Where a test says that the
 * pair survives, the service revokes the old access token, with which no caller could be served.
 */
import { statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canFillDisk, fillDisk, freeDisk } from '../support/tokens/fault-disk.ts';
import { BOUND } from '../support/processes/bound-user.ts';
import { saved, startFaultWorld } from '../support/tokens/fault-world.ts';

describe.skipIf(!canFillDisk)('on a full disk', () => {
  test.concurrent('a pair is saved where its claim was', async () => {
    await using world = await startFaultWorld({ revoke: true });
    const answer = world.sandbox.tokenAnswers.hold('after');
    const gateway = await world.serve();
    await answer.arrived;
    fillDisk(gateway, statSync(world.path).size);
    answer.release();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    await gateway.stop();
    expect(await world.left()).toEqual(saved(2, ['answered']));
  });

  test.concurrent(
    'if no byte can be written after the answer, the pair is served from memory, SIGTERM waits, and it is saved',
    async () => {
      await using world = await startFaultWorld({ revoke: true });
      const answer = world.sandbox.tokenAnswers.hold('after');
      const gateway = await world.serve();
      await answer.arrived;
      fillDisk(gateway, 0);
      answer.release();
      await gateway.printed(/The new token pair could not be saved/);
      await gateway.serves();
      gateway.signal('SIGTERM');
      await gateway.printed(/stopping/);
      gateway.signal('SIGTERM');
      freeDisk(gateway);
      expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  );
});

test.concurrent(
  'if the store becomes read-only during an exchange, SIGTERM leaves the pair in an emergency file, and the next start saves it',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    world.give(BOUND);
    const answer = world.sandbox.tokenAnswers.hold('after');
    const gateway = await world.serve({ user: BOUND });
    await answer.arrived;
    world.writable(false);
    answer.release();
    await gateway.printed(/The new token pair could not be saved/);
    await gateway.serves();
    gateway.signal('SIGTERM');
    await gateway.ended;
    world.writable(true);
    expect(world.unsaved()).toBe(1);
    const next = await world.serve();
    await next.printed(/the pair of an emergency file was saved/);
    await next.serves();
    await next.stop();
    expect(world.unsaved()).toBe(0);
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);

test.concurrent(
  'a gateway that starts on a read-only store serves with the access token, refreshes nothing, and says so',
  async () => {
    await using world = await startFaultWorld();
    world.give(BOUND);
    world.writable(false);
    const gateway = await world.serve({ user: BOUND });
    await gateway.printed(/its file or folder (is read-only|may not be accessed)/);
    await gateway.serves();
    world.expireAtService();
    const { errors } = await gateway.ask();
    expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
    expect(world.outcomes()).toEqual([]);
    world.writable(true);
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    await gateway.stop();
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);
