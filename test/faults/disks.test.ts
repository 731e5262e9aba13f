/**
 * Disks that are full and folders that cannot be written, before and during an exchange. Where the pair is
 * to survive, the service revokes the old access token: with that one nobody could be served.
 */
import { statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canFillDisk, fillDisk, freeDisk } from '../support/tokens/fault-disk.ts';
import {
  BOUND,
  startFaultWorld,
  type FaultGateway,
  type FaultWorld,
} from '../support/tokens/fault-world.ts';

const ROTATIONS = 60;

describe.skipIf(!canFillDisk)('disk full', () => {
  test.concurrent(
    'before the claim: exchanges succeed from the reserve',
    { timeout: 120_000 },
    async () => {
      await using world = await startFaultWorld({ revoke: true });
      const gateway = await world.serve();
      await gateway.printed(/access token rotated/);
      await gateway.serves();
      fillDisk(gateway, statSync(world.path).size);
      // So many that their traces do not fit into pages that are in use.
      for (let rotation = 0; rotation < ROTATIONS; rotation += 1) {
        world.expire();
        await gateway.serves();
      }
      await gateway.stop();
      expect(gateway.said).not.toMatch(/could not be (saved|written)/);
      await isSavedAs(world, 2 + ROTATIONS, Array(1 + ROTATIONS).fill('answered'));
    },
  );

  test.concurrent('between the claim and the save: saved from the reserve', async () => {
    await using world = await startFaultWorld();
    const answer = world.sandbox.tokenAnswers.hold('after');
    const gateway = await world.serve();
    await answer.arrived;
    fillDisk(gateway, statSync(world.path).size);
    answer.release();
    await gateway.printed(/access token rotated/);
    await gateway.serves();
    await gateway.stop();
    expect(gateway.said).not.toContain('could not be saved');
    await isSavedAs(world, 2, ['answered']);
  });

  test.concurrent(
    'not a byte can be written, before the claim: no exchange; it serves, and says what to look at',
    async () => {
      await using world = await startFaultWorld();
      const gateway = await world.hanging({ at: 'before the claim' });
      await gateway.printed(/REACHED before the claim/);
      fillDisk(gateway, 0);
      gateway.tell('go');
      await gateway.printed(/the token store cannot be written\. Nothing was lost/);
      await gateway.serves();
      expect(world.outcomes()).toEqual([]);
      freeDisk(gateway);
      await gateway.printed(/access token rotated/);
      await gateway.stop();
      await isSavedAs(world, 2, ['answered']);
    },
  );

  test.concurrent(
    'not a byte can be written, between the claim and the save: held in memory and served, saved later',
    async () => {
      await using world = await startFaultWorld({ revoke: true });
      const answer = world.sandbox.tokenAnswers.hold('after');
      const gateway = await world.serve();
      await answer.arrived;
      fillDisk(gateway, 0);
      answer.release();
      await gateway.printed(/could not be saved, and is held in memory/);
      await gateway.serves();
      expect(world.rescued()).toBe(0);
      freeDisk(gateway);
      await gateway.printed(/the new token pair is saved now/);
      await gateway.stop();
      await isSavedAs(world, 2, ['answered']);
    },
  );

  test.concurrent('saved nowhere: SIGTERM waits until there is room', async () => {
    await using world = await startFaultWorld();
    const answer = world.sandbox.tokenAnswers.hold('after');
    const gateway = await world.hanging();
    await answer.arrived;
    fillDisk(gateway, 0);
    answer.release();
    await gateway.printed(/could not be saved, and is held in memory/);
    gateway.signal('SIGTERM');
    await gateway.printed(/STOPPING/);
    gateway.tell('later 6000');
    await gateway.printed(/The new token pair is neither in the store nor in a rescue file\./);
    gateway.signal('SIGTERM');
    freeDisk(gateway);
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
    await isSavedAs(world, 2, ['answered']);
  });
});

describe('read-only during an exchange', () => {
  test.concurrent(
    'held in memory, served, and in the rescue file at once; saved when it can be',
    async () => {
      await using world = await startFaultWorld({ revoke: true });
      const gateway = await heldOnReadOnly(world);
      await gateway.serves();
      expect(world.rescued()).toBe(1);
      expect(await world.command('tokens', 'status')).toMatchObject({
        code: 1,
        stdout: expect.stringContaining('unsaved: '),
      });
      world.writable(true);
      await gateway.printed(/the new token pair is saved now/);
      await gateway.serves();
      expect(world.rescued()).toBe(0);
      expect(await gateway.stop()).toMatchObject({ code: 0 });
      await isSavedAs(world, 2, ['answered']);
    },
  );

  test.concurrent(
    'an expiry while it cannot be saved: no further exchange, and the operator is named',
    async () => {
      await using world = await startFaultWorld();
      const gateway = await heldOnReadOnly(world);
      await gateway.serves();
      world.expire();
      expect((await gateway.ask()).errors).toMatchObject([
        {
          message: expect.stringContaining(
            'not refreshed before the pair of the last refresh is saved',
          ),
          extensions: { code: 'INTERNAL_SERVER_ERROR' },
        },
      ]);
      expect(world.outcomes()).toEqual(['answered']);
      world.writable(true);
      await gateway.printed(/the new token pair is saved now/);
      await gateway.serves();
      await gateway.stop();
      await isSavedAs(world, 3, ['answered', 'answered']);
    },
  );

  test.concurrent(
    'SIGTERM while it fails: it ends within its patience, and the next start saves the pair',
    async () => {
      await using world = await startFaultWorld({ revoke: true });
      const gateway = await heldOnReadOnly(world);
      expect(await gateway.stop()).toMatchObject({ code: 0, signal: null, stderr: '' });
      world.writable(true);
      await isRescued(world);
    },
  );

  test.concurrent('kill -9 while it fails: saved by the next start', async () => {
    await using world = await startFaultWorld({ revoke: true });
    const gateway = await heldOnReadOnly(world);
    await gateway.kill();
    world.writable(true);
    await isRescued(world);
    expect(world.outcomes()).toEqual(['answered']);
  });

  test.concurrent('kill -9 while it fails: saved by `tokens recover`', async () => {
    await using world = await startFaultWorld({ revoke: true });
    const gateway = await world.hanging({ fails: true });
    await gateway.printed(/is in the rescue file; the next start saves it/);
    await gateway.kill();
    expect((await world.command('tokens', 'recover')).code).toBe(0);
    await isSavedAs(world, 2, ['answered']);
  });
});

test.concurrent(
  'read-only at the start: it serves with the access token, rotates nothing, and says so',
  async () => {
    await using world = await startFaultWorld();
    world.give(BOUND);
    world.writable(false);
    const gateway = await world.serve({ user: BOUND });
    await gateway.printed(/The token store cannot be written \(.*EACCES\)/);
    await gateway.printed(/No rescue file can be made/);
    // At once, and not only when the access token has expired.
    await gateway.printed(/A refresh is due and cannot begin\..*"trouble":"blocked"/);
    const [address] = await gateway.printed(/http:\/\/[^"\s]+\/metrics/);
    expect(await (await fetch(address)).text()).toMatch(/trouble="blocked"\} 1\n/);
    const status = world.start(['tokens', 'status'], {}, BOUND);
    expect(await status.ended).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('blocked: '),
    });
    await gateway.serves();
    world.expire();
    expect((await gateway.ask()).errors).toMatchObject([
      {
        message: expect.stringContaining('the token store cannot be written'),
        extensions: { code: 'INTERNAL_SERVER_ERROR' },
      },
    ]);
    expect(world.outcomes()).toEqual([]);
    world.writable(true);
    await gateway.printed(/access token rotated/);
    await gateway.serves();
    await gateway.stop();
    await isSavedAs(world, 2, ['answered']);
  },
);

/** Its files became read-only between the claim and the answer. */
async function heldOnReadOnly(world: FaultWorld): Promise<FaultGateway> {
  world.give(BOUND);
  const answer = world.sandbox.tokenAnswers.hold('after');
  const gateway = await world.serve({ user: BOUND });
  await answer.arrived;
  world.writable(false);
  answer.release();
  await gateway.printed(/could not be saved, and is held in memory/);
  await gateway.printed(/is in the rescue file; the next start saves it/);
  return gateway;
}

async function isRescued(world: FaultWorld): Promise<void> {
  expect(world.rescued()).toBe(1);
  expect(await world.command('tokens', 'status')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('unsaved: '),
  });
  const next = await world.serve();
  await next.printed(/a token pair was saved from a rescue file/);
  await next.serves();
  await next.stop();
  expect(world.rescued()).toBe(0);
  await isSavedAs(world, 2, ['answered']);
}

async function isSavedAs(world: FaultWorld, generation: number, outcomes: string[]): Promise<void> {
  expect(world.outcomes()).toEqual(outcomes);
  expect(await world.stored()).toMatchObject({ generation, claim: null });
  expect((await world.command('tokens', 'status')).code).toBe(0);
  expect(await world.holdsTheLastPair()).toBe(true);
}
