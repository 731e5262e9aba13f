/** The file of the store is removed, or replaced by an older copy, while a gateway runs. */
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
import {
  keySetting,
  startFaultWorld,
  type FaultGateway,
  type FaultWorld,
} from '../support/tokens/fault-world.ts';

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

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
    expect(gateway.said).toContain('The token store was replaced by an older copy');
    expect(gateway.said).toContain('the new token pair is saved now');
    await gateway.stop();
    await isSavedAs(world, 5, 4);
  },
);

test.concurrent(
  'if the store is removed before SIGTERM, the next start creates a store and saves the pair into it',
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
  'if the store is removed before kill -9 and an older copy put back, the next start saves the pair into it',
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

test.concurrent(
  'into an older copy with another set the newest pair is saved and served, and an alarm is raised',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const backup = `${world.path}-backup`;
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    copyFileSync(world.path, backup);
    world.expire();
    const imported = await world.command('tokens', 'import', world.makeNewSet(), '--replace');
    expect(imported.code).toBe(0);
    await gateway.serves();
    world.expire();
    await gateway.serves();
    copyFileSync(backup, world.path);
    world.expire();
    await gateway.serves();
    expect(gateway.said).toMatch(/FATAL: The token store was replaced by an older copy/);
    expect(await metricsOf(gateway)).toContain('recruiting_token_store_losses_total 1\n');
    await gateway.stop();
    await isSavedAs(world, 6, 4);
  },
);

test.concurrent(
  'the pair of a command survives an older copy that is put back right after its refresh',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const backup = `${world.path}-backup`;
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    copyFileSync(world.path, backup);
    expect(await world.command('tokens', 'refresh')).toMatchObject({ code: 0 });
    copyFileSync(backup, world.path);
    // The exchange has ended the access token that the gateway has.
    await gateway.serves();
    world.expire();
    await gateway.serves();
    await gateway.stop();
    expect(world.rescued()).toBe(0);
    await isSavedAs(world, 4, 3);
  },
);

test.concurrent(
  'if the store is removed, `tokens status` names the rescue file and `tokens recover` creates a store, also after kill -9',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const { gateway } = await ahead(world);
    await removed(world, gateway);
    expect((await world.command('tokens', 'recover')).code).toBe(0);
    await gateway.printed(/the new token pair is saved now/);
    await gateway.serves();
    await removed(world, gateway);
    await gateway.kill();
    const status = await world.command('tokens', 'status');
    expect(status).toMatchObject({ code: 1, stderr: '' });
    expect(status.stdout).toMatch(/Rescue file +\/\S+\.json\n[^]*run `tokens recover`/);
    expect(status.stdout).not.toMatch(/administrator/);
    expect(await world.command('tokens', 'recover')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('saved from a rescue file into the store: generation 5'),
    });
    expect((await world.command('tokens', 'status')).code).toBe(0);
    const next = await world.serve();
    world.expire();
    await next.serves();
    await next.stop();
    expect(world.rescued()).toBe(0);
    await isSavedAs(world, 6, 5);
  },
);

test.concurrent(
  'a reading command with other keys than the gateway writes nothing, and the gateway continues',
  async () => {
    await using world = await startFaultWorld({ revoke: true, keys: [OLD] });
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    const before = world.files();
    for (const command of ['status', 'check']) {
      const TOKEN_STORE_KEY = keySetting(NEW, OLD);
      const { code, stderr } = await world.commandIn({ TOKEN_STORE_KEY }, 'tokens', command);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    }
    expect(world.files()).toEqual(before);
    world.expire();
    await gateway.serves();
    expect(gateway.said).not.toContain('"trouble"');
    await gateway.stop();
    await isSavedAs(world, 3, 2);
  },
);

test.concurrent(
  'with both keys a start saves the pair into an older copy that only one of them opens, also after kill -9',
  async () => {
    await using world = await startFaultWorld({ revoke: true, keys: [NEW, OLD] });
    const backup = `${world.path}-backup`;
    copyFileSync(world.path, backup);
    await openSqliteStore(backup, { sealer: createSealer([OLD, NEW]) }).close();
    const gateway = await world.serve({ extra: { TOKEN_STORE_KEY: keySetting(NEW) } });
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    renameSync(backup, world.path);
    world.expire();
    await expectPrintedFor(gateway, await gateway.ask(), 'with both keys in TOKEN_STORE_KEY');
    await gateway.printed(/is in the rescue file; the next start saves it/);
    expect(gateway.said).not.toMatch(/is gone/);
    await gateway.kill();
    expect((await world.command('tokens', 'status')).stdout).toMatch(/Rescue file .*\n/);
    await startedAgain(world);
    await isSavedAs(world, 3, 2);
  },
);

/** At generation 4, after three exchanges, with a copy of generation 2. */
async function ahead(world: FaultWorld) {
  const backup = `${world.path}-backup`;
  const gateway = await world.serve();
  await gateway.printed(/access token refreshed/);
  await gateway.serves();
  copyFileSync(world.path, backup);
  for (let refresh = 0; refresh < 2; refresh += 1) {
    world.expire();
    await gateway.serves();
  }
  return { gateway, backup };
}

async function removed(world: FaultWorld, gateway: FaultGateway): Promise<void> {
  rmSync(world.path);
  world.expire();
  const answer = await gateway.ask();
  expect(answer.errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
  await expectPrintedFor(gateway, answer, 'the file of the token store is gone');
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
  expect(await world.stored()).toMatchObject({ generation, claim: null, lost: false });
  expect((await world.command('tokens', 'status')).code).toBe(0);
  expect(await world.holdsTheLastPair()).toBe(true);
}

async function metricsOf(gateway: FaultGateway): Promise<string> {
  const [, url] = await gateway.printed(/metrics \{"url":"([^"]+)"/);
  return (await fetch(url!)).text();
}
