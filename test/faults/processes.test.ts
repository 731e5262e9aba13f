/** Faults that only real processes have: signals, disks, and several gateways on one file. */
import { chmodSync, chownSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { importPair } from '../../src/tokens/state.ts';
import { readPair } from '../../src/tokens/pair.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { refusal } from '../service/replies.ts';
import { canFillDisk, fillDisk, freeDisk } from '../support/tokens/fault-disk.ts';
import { eventually, saved, startTokenWorld, type TokenWorld } from '../support/tokens/world.ts';

/** A user who is bound by file permissions: `nobody` if root runs the tests. */
const BOUND = process.getuid?.() === 0 ? 65_534 : process.getuid!();

test.concurrent(
  'kill -9 with the answer on its way: the old access token serves while it works, and the loss is reported then',
  async () => {
    await using world = await worldWithSet();
    const { gateway, answer } = await startExchange(world);
    await gateway.kill();
    await answer.left;
    await world.endClaim();
    const next = await world.serve();
    await next.serves();
    expect(world.outcomes()).toHaveLength(1);
    const status = { code: 1, stdout: expect.stringContaining('uncertain') };
    expect(await world.tokens(['status'])).toMatchObject(status);
    await world.expire();
    const { errors } = await next.ask();
    expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_UNREACHABLE' } }]);
    await next.printed(/The refresh token does not work any more/);
    const later = await next.ask();
    expect(later.errors).toMatchObject([{ extensions: { code: 'TOKENS_LOST' } }]);
    expect((await world.tokens(['status'])).code).toBe(2);
    await next.stop();
    // An imported pair is lost after the second refusal: somebody watches.
    expect(world.outcomes()).toEqual(['spent-in-silence', 'invalid-grant', 'invalid-grant']);
  },
);

test.concurrent(
  'kill -9 while the store is locked: the pair is in an emergency file, which the next start saves',
  async () => {
    await using world = await worldWithSet(true);
    const { gateway, answer } = await startExchange(world);
    using foreign = new DatabaseSync(world.path);
    foreign.exec('BEGIN EXCLUSIVE');
    answer.release();
    await eventually(() => expect(world.unsaved()).toHaveLength(1));
    await gateway.kill();
    foreign.exec('ROLLBACK');
    const next = await world.serve();
    await next.printed(/the pair of an emergency file was saved/);
    await next.serves();
    await next.stop();
    expect(world.unsaved()).toEqual([]);
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);

test.concurrent(
  'two SIGTERM during an exchange end the gateway after the pair is saved',
  async () => {
    await using world = await worldWithSet(true);
    const { gateway, answer } = await startExchange(world);
    gateway.signal('SIGTERM');
    await gateway.printed(/stopping: .* a token pair is saved first/);
    gateway.signal('SIGTERM');
    gateway.signal('SIGINT');
    answer.release();
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);

test
  .skipIf(!canFillDisk)
  .concurrent(
    'if the disk is full after the answer, the pair is served from memory, SIGTERM waits, and it is saved',
    async () => {
      await using world = await worldWithSet(true);
      const { gateway, answer } = await startExchange(world);
      fillDisk(gateway, 0);
      answer.release();
      await gateway.printed(/The new token pair could not be saved/);
      await gateway.serves();
      gateway.signal('SIGTERM');
      await gateway.printed(/stopping/);
      freeDisk(gateway);
      expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
      expect(await world.left()).toEqual(saved(2, ['answered']));
    },
  );

test.concurrent(
  'a gateway that starts on a read-only store serves with the access token, refreshes nothing, and says so',
  async () => {
    await using world = await worldWithSet();
    const places = [world.own, ...readdirSync(world.own).map((name) => join(world.own, name))];
    const setWritable = (yes: boolean) => {
      for (const place of places) {
        chmodSync(place, (place === world.own ? 0o500 : 0o400) | (yes ? 0o200 : 0));
      }
    };
    for (const place of [...places, world.env.TOKEN_RESCUE_DIR]) chownSync(place, BOUND, BOUND);
    setWritable(false);
    const gateway = await world.serve({}, BOUND);
    await gateway.printed(/token store .*(readonly|permission denied)/);
    await gateway.serves();
    expect(world.outcomes()).toEqual([]);
    setWritable(true);
    await gateway.printed(/access token refreshed/);
    await gateway.serves();
    await gateway.stop();
    expect(await world.left()).toEqual(saved(2, ['answered']));
  },
);

test.concurrent('a refusal that is no expiry, such as a demotion, costs no exchange', async () => {
  await using world = await worldWithSet();
  const gateway = await world.serve();
  await gateway.printed(/access token refreshed/);
  await gateway.serves();
  // A token that is seconds old is treated in another way.
  await world.alter(({ savedAt }) => ({ savedAt: savedAt - 60_000 }));
  world.sandbox.answer(refusal('token_revoked'));
  const { errors } = await gateway.ask();
  expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_UNAUTHORIZED' } }]);
  await gateway.stop();
  expect(world.outcomes()).toEqual(['answered']);
});

test.concurrent(
  'three gateways that start with one link on an empty store make one import, and one exchange for each expiry, and no caller gets an error',
  async () => {
    await using world = await startTokenWorld({ revoke: true });
    const link = { TOKEN_LINK: world.sandbox.tokenLink };
    const gateways = await Promise.all([1, 2, 3].map(() => world.serve(link)));
    const serveAll = () =>
      Promise.all(gateways.flatMap(({ serves }) => Array.from({ length: 20 }, serves)));
    await serveAll();
    await eventually(async () => expect(await world.stored()).toMatchObject({ generation: 2 }));
    await world.expire();
    await serveAll();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    expect(
      gateways.flatMap(({ said }) => said.match(/gives no token set|is spent/g) ?? []),
    ).toEqual([]);
    expect(await world.left()).toEqual(saved(3, ['answered', 'answered']));
  },
);

test.concurrent('a link on the command line does not appear in the process list', async () => {
  await using world = await startTokenWorld({});
  const answer = world.sandbox.tokenAnswers.hold('after');
  const importing = world.start(['tokens', 'import', world.sandbox.tokenLink]);
  await answer.arrived;
  const title = readFileSync(`/proc/${importing.pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  expect(title.trim()).toBe('recruiting-subgraph');
  answer.release();
  expect((await importing.ended).code).toBe(0);
});

/** Starts a gateway, whose first exchange is held after the service has processed it. */
async function startExchange(world: TokenWorld) {
  const answer = world.sandbox.tokenAnswers.hold('after');
  const gateway = await world.serve();
  await answer.arrived;
  return { gateway, answer };
}

/** Its store has a set that was imported and never refreshed, so that a gateway refreshes it at once. */
async function worldWithSet(revoke = false): Promise<TokenWorld> {
  const world = await startTokenWorld({ revoke });
  const pair = readPair(await (await fetch(world.sandbox.tokenLink)).json())!;
  const store = openSqliteStore(world.path, createSealer([]));
  const service = world.sandbox.url;
  await store.update(importPair({ pair, service, by: 'test', replace: false }));
  return world;
}
