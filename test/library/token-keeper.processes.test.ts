import { watch } from 'node:fs/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OAuthService } from '../../examples/token-keeper/service.ts';
import { createTokenKeeper } from '../../src/library/token-keeper.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { bundled } from '../support/processes/bundled.ts';
import { startProcess } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { listenForTest } from '../support/listening.ts';

const SECRET = 'secret-of-the-example';
const KILLS = 5;
const program = await bundled('examples/token-keeper/worker.ts');
/** Which of three processes is killed after each exchange. */
const VICTIMS = fc.sample(fc.nat(2), { numRuns: KILLS, seed: 5 });

test('examples/token-keeper: three processes that are killed share a token that expires each second, and none is used twice or lost', async () => {
  using folder = temporaryFolder();
  const service = new OAuthService(SECRET);
  const url = `http://127.0.0.1:${await listenForTest(service.server, '127.0.0.1')}`;
  const path = folder.file('tokens.db');
  const where = { endpoint: `${url}/token`, store: `sqlite:${path}` };
  const client = { id: 'worker', secret: SECRET };
  const keeper = await createTokenKeeper({ ...where, client });
  expect(await keeper.import(service.grant())).toBe('imported');
  await keeper.close();

  const env = {
    TOKEN_ENDPOINT: where.endpoint,
    STORE: where.store,
    CLIENT_SECRET: SECRET,
    API: `${url}/hello`,
  };
  const start = () => startProcess([program], { env });
  const workers = [start(), start(), start()];
  await Promise.all(workers.map((worker) => worker.printed(/Hello/)));
  const received = new Set<string>();
  for await (const { filename } of watch(folder.path)) {
    // Each pair lies in an emergency file before it is in the store.
    if (!/^unsaved-.*json$/.test(filename!) || received.has(filename!)) continue;
    received.add(filename!);
    const victim = VICTIMS[received.size - 1]!;
    await workers[victim]!.kill();
    workers[victim] = start();
    if (received.size === KILLS) break;
  }
  await Promise.all(workers.map((worker) => worker.printed(/Hello/)));
  const ends = await Promise.all(workers.map((worker) => worker.stop()));
  expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(service.reuses).toBe(0);
  expect(service.exchanges).toBeGreaterThan(KILLS);
  const store = openSqliteStore(path, createSealer([]));
  expect((await store.read()).state?.pair.refreshToken).toBe(service.newest);
});
