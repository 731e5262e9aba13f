/** Stores that are removed, replaced or locked under a running gateway. */
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { eventually, saved, startFaultWorld } from '../support/tokens/fault-world.ts';

test.concurrent.each([
  ['an older copy is put in its place', (path: string) => renameSync(`${path}-backup`, path)],
  ['its file is removed', (path: string) => rmSync(path)],
])('after %s, the next exchange begins with the newest pair', async (_what, harm) => {
  await using world = await startFaultWorld();
  copyFileSync(world.path, `${world.path}-backup`);
  const gateway = await world.serve();
  await gateway.printed(/access token refreshed/);
  await gateway.serves();
  harm(world.path);
  world.expireAtService();
  // The newest token is seconds old, and is not believed to have expired.
  await gateway.ask();
  await gateway.printed(/the token store lacked the newest pair, which was put back/);
  await world.age();
  await gateway.serves();
  await gateway.stop();
  expect(await world.left()).toEqual(saved(3, ['answered', 'answered']));
});

test.concurrent(
  'while another program locks the store, requests that need no store are answered, and the others continue afterwards',
  async () => {
    await using world = await startFaultWorld({ revoke: true });
    const gateway = await world.serve();
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    await world.expire();
    using foreign = new DatabaseSync(world.path);
    foreign.exec('BEGIN EXCLUSIVE');
    const before = world.sandbox.stats.requests.graphql;
    const answered = gateway.serves();
    await eventually(() => expect(world.sandbox.stats.requests.graphql).toBe(before + 1));
    expect((await fetch(new URL('/health', gateway.url))).status).toBe(200);
    foreign.exec('ROLLBACK');
    await answered;
    await gateway.stop();
    expect(await world.left()).toEqual(saved(3, ['answered', 'answered']));
  },
);
