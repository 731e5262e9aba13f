/** The file of the store is taken away, or an older copy is put in its place, under a gateway that runs. */
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startFaultWorld, type FaultGateway, type FaultWorld } from '../support/fault-world.ts';

test.concurrent.each([
  ['written over it', copyFileSync],
  ['moved to its place', renameSync],
])(
  'an older copy that is %s: the newest pair is saved into it before the next exchange',
  async (_, put) => {
    await using world = await startFaultWorld({ revoke: true });
    const { gateway, backup } = await ahead(world);
    put(backup, world.path);
    world.expire();
    await gateway.serves();
    expect(gateway.said).toContain('An older copy of the token store');
    expect(gateway.said).toContain('the new token pair is saved now');
    await gateway.stop();
    await isSavedAs(world, 5, 4);
  },
);

test.concurrent(
  'the file is removed, then SIGTERM: the next start makes a store, and saves the pair into it',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const { gateway } = await ahead(world);
    await removed(world, gateway);
    expect(await gateway.stop()).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(world.rescued()).toBe(1);
    await startedAgain(world);
    await isSavedAs(world, 5, 4);
  },
);

test.concurrent(
  'the file is removed, kill -9, an older copy is put there: the next start saves the pair into it',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const { gateway, backup } = await ahead(world);
    await removed(world, gateway);
    await gateway.kill();
    expect(world.rescued()).toBe(1);
    renameSync(backup, world.path);
    await startedAgain(world);
    await isSavedAs(world, 5, 4);
  },
);

/** At generation 4, after three exchanges, with a copy of generation 2. */
async function ahead(world: FaultWorld) {
  const backup = `${world.path}-backup`;
  const gateway = await world.serve();
  await gateway.printed(/access token rotated/);
  await gateway.serves();
  copyFileSync(world.path, backup);
  for (let rotation = 0; rotation < 2; rotation += 1) {
    world.expire();
    await gateway.serves();
  }
  return { gateway, backup };
}

async function removed(world: FaultWorld, gateway: FaultGateway): Promise<void> {
  rmSync(world.path);
  world.expire();
  expect((await gateway.ask()).errors).toMatchObject([
    {
      message: expect.stringContaining('the file of the token store is gone'),
      extensions: { code: 'INTERNAL_SERVER_ERROR' },
    },
  ]);
  await gateway.printed(/is in the rescue file; the next start saves it/);
  expect(world.rescued()).toBe(1);
}

async function startedAgain(world: FaultWorld): Promise<void> {
  const next = await world.serve();
  await next.printed(/a token pair was saved from a rescue file/);
  await next.serves();
  await next.stop();
  expect(world.rescued()).toBe(0);
}

async function isSavedAs(world: FaultWorld, generation: number, exchanges: number): Promise<void> {
  expect(world.outcomes()).toEqual(Array(exchanges).fill('answered'));
  expect(await world.stored()).toMatchObject({ generation, mark: null, lost: false });
  expect((await world.command('tokens', 'status')).code).toBe(0);
  expect(await world.holdsTheLastPair()).toBe(true);
}
