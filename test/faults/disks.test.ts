/**
 * Disks that are full and folders that cannot be written, before and during an exchange. Where a test says that the
 * pair survives, the service revokes the old access token, with which no caller could be served.
 */
import { statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canFillDisk, fillDisk, freeDisk } from '../support/tokens/fault-disk.ts';
import { BOUND } from '../support/processes/bound-user.ts';
import {
  eventually,
  saved,
  startFaultWorld,
  type FaultGateway,
  type FaultWorld,
} from '../support/tokens/fault-world.ts';

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
    'if no byte can be written before the claim, there is no exchange: the gateway serves, and says why',
    async () => {
      await using world = await startFaultWorld();
      const gateway = await world.hanging({ at: 'before the claim' });
      await gateway.printed(/REACHED before the claim/);
      fillDisk(gateway, 0);
      gateway.tell('go');
      await gateway.printed(/The token store fails \(.*disk/);
      await gateway.serves();
      expect(world.outcomes()).toEqual([]);
      freeDisk(gateway);
      await gateway.printed(/access token refreshed/);
      await gateway.stop();
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  );

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

describe('if the store becomes read-only during an exchange', () => {
  test.concurrent(
    'the pair is served from memory and from no other exchange, and is saved when possible',
    async () => {
      await using world = await startFaultWorld({ revoke: true });
      const gateway = await heldOnReadOnly(world);
      await gateway.serves();
      expect(world.unsaved()).toBe(1);
      expect((await world.command('tokens', 'status')).code).toBe(1);
      world.writable(true);
      await eventually(() => expect(world.unsaved()).toBe(0));
      await gateway.serves();
      expect(await gateway.stop()).toMatchObject({ code: 0 });
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  );

  test.concurrent.each(['SIGTERM', 'SIGKILL'] as const)(
    'after %s the next start saves the pair of the emergency file',
    async (signal) => {
      await using world = await startFaultWorld({ revoke: true });
      const gateway = await heldOnReadOnly(world);
      gateway.signal(signal);
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
});

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

/** Its store became read-only between the claim and the answer. */
async function heldOnReadOnly(world: FaultWorld): Promise<FaultGateway> {
  world.give(BOUND);
  const answer = world.sandbox.tokenAnswers.hold('after');
  const gateway = await world.serve({ user: BOUND });
  await answer.arrived;
  world.writable(false);
  answer.release();
  await gateway.printed(/The new token pair could not be saved/);
  return gateway;
}
