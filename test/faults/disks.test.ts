/**
 * Disks that are full and folders that cannot be written, before and during an exchange. Where a test says that the
 * pair survives, the service revokes the old access token, with which no caller could be served.
 */
import { statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
import { canFillDisk, fillDisk, freeDisk } from '../support/tokens/fault-disk.ts';
import { BOUND } from '../support/processes/bound-user.ts';
import {
  startFaultWorld,
  type FaultGateway,
  type FaultWorld,
} from '../support/tokens/fault-world.ts';

const REFRESHES = 60;

describe.skipIf(!canFillDisk)('on a full disk', () => {
  test.concurrent('exchanges succeed with the reserved space', { timeout: 120_000 }, async () => {
    await using world = await startFaultWorld({ revoke: true });
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    fillDisk(gateway, statSync(world.path).size);
    // So many that their traces do not fit into database pages that are in use.
    for (let refresh = 0; refresh < REFRESHES; refresh += 1) {
      world.expire();
      await gateway.serves();
    }
    await gateway.stop();
    expect(gateway.said).not.toMatch(/could not be (saved|written)/);
    await isSavedAs(world, 2 + REFRESHES, Array(1 + REFRESHES).fill('answered'));
  });

  test.concurrent(
    'a pair is saved with the reserved space when the disk fills between the claim and the save',
    async () => {
      await using world = await startFaultWorld();
      const answer = world.sandbox.tokenAnswers.hold('after');
      const gateway = await world.serve();
      await answer.arrived;
      fillDisk(gateway, statSync(world.path).size);
      answer.release();
      await gateway.printed(/access token refreshed/);
      await gateway.serves();
      await gateway.stop();
      expect(gateway.said).not.toContain('could not be saved');
      await isSavedAs(world, 2, ['answered']);
    },
  );

  test.concurrent(
    'if no byte can be written before the claim, there is no exchange: the gateway serves, and says what to check',
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
      await gateway.printed(/access token refreshed/);
      await gateway.stop();
      await isSavedAs(world, 2, ['answered']);
    },
  );

  test.concurrent(
    'if no byte can be written between the claim and the save, the pair is served from memory and saved later',
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

  test.concurrent('SIGTERM waits for free space if the pair could be saved nowhere', async () => {
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

describe('if the store becomes read-only during an exchange', () => {
  test.concurrent(
    'the pair is served from memory and put into the rescue file at once, and saved when possible',
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
    'an access token that expires meanwhile causes no further exchange, and the log says what to do',
    async () => {
      await using world = await startFaultWorld();
      const gateway = await heldOnReadOnly(world);
      await gateway.serves();
      world.expire();
      const answer = await gateway.ask();
      expect(answer.errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
      const words = 'not refreshed before the pair of the last refresh is saved';
      await expectPrintedFor(gateway, answer, words);
      expect(world.outcomes()).toEqual(['answered']);
      world.writable(true);
      await gateway.printed(/the new token pair is saved now/);
      await gateway.serves();
      await gateway.stop();
      await isSavedAs(world, 3, ['answered', 'answered']);
    },
  );

  test.concurrent(
    'SIGTERM ends the gateway in bounded time, and the next start saves the pair',
    async () => {
      await using world = await startFaultWorld({ revoke: true });
      const gateway = await heldOnReadOnly(world);
      expect(await gateway.stop()).toMatchObject({ code: 0, signal: null, stderr: '' });
      world.writable(true);
      await isRescued(world);
    },
  );

  test.concurrent('after kill -9 the next start saves the pair', async () => {
    await using world = await startFaultWorld({ revoke: true });
    const gateway = await heldOnReadOnly(world);
    await gateway.kill();
    world.writable(true);
    await isRescued(world);
    expect(world.outcomes()).toEqual(['answered']);
  });

  test.concurrent('after kill -9 `tokens recover` saves the pair', async () => {
    await using world = await startFaultWorld({ revoke: true });
    const gateway = await world.hanging({ fails: true });
    await gateway.printed(/is in the rescue file; the next start saves it/);
    await gateway.kill();
    expect((await world.command('tokens', 'recover')).code).toBe(0);
    await isSavedAs(world, 2, ['answered']);
  });
});

test.concurrent(
  'a gateway that starts on a read-only store serves with the access token, refreshes nothing, and says so',
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
    const status = world.start(['tokens', 'status'], { user: BOUND });
    expect(await status.ended).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('blocked: '),
    });
    await gateway.serves();
    world.expire();
    const answer = await gateway.ask();
    expect(answer.errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
    await expectPrintedFor(gateway, answer, 'the token store cannot be written');
    expect(world.outcomes()).toEqual([]);
    world.writable(true);
    await gateway.printed(/access token refreshed/);
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
