import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import { readPair } from '../../src/tokens/pair.ts';
import { openPostgresStore } from '../../src/tokens/postgres.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { fingerprintOf, importPair, isUncertain } from '../../src/tokens/state.ts';
import type { TokenStore } from '../../src/tokens/store.ts';
import { startService, type Service } from '../service/service.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { startProcess } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const KILLS = 100;
/** How many exchanges a process makes, and for how long it goes on after the last of them. */
const MOMENTS = fc.record({
  exchanges: fc.integer({ min: 0, max: 3 }),
  ms: fc.integer({ min: 0, max: 15 }),
});

test.each([
  ['SQLite', async (folder: string) => join(folder, 'tokens.db'), openSqliteStore],
  [
    'PostgreSQL',
    async () => {
      const server = await startPostgres();
      onTestFinished(() => server.close());
      return server.emptyStore();
    },
    openPostgresStore,
  ],
])(
  `kill -9 at ${KILLS} random moments of exchanges loses no pair that was kept, on %s`,
  { timeout: 1_200_000 },
  async (_name, addressIn, open) => {
    const folder = temporaryFolder('disk');
    onTestFinished(() => folder[Symbol.dispose]());
    const address = await addressIn(folder.path);
    const service = await startService();
    onTestFinished(() => service.close());
    const sealer = createSealer([]);
    const store = open(address, sealer);
    onTestFinished(() => store.close());
    const emergency = emergencyIn(folder.path, sealer);
    const seen = { kept: 0, uncertain: 0 };
    await importNew(store, service);
    let last = '';
    for (const { exchanges, ms } of fc.sample(MOMENTS, KILLS)) {
      const program = startProcess([
        'test/support/tokens/exchanging.ts',
        address,
        folder.path,
        service.url,
      ]);
      const [, found] = await program.printed(/found (\w+)/);
      // What was kept before the kill is what the next process begins with.
      if (last !== '') expect(found).toBe(last);
      await program.printed(new RegExp(`found(?:[^]*?\\nkept){${exchanges}}`));
      await delay(ms);
      const { stdout } = await program.kill();
      last = stdout.trimEnd().split('\n').at(-1)!.split(' ')[1]!;
      seen.kept += stdout.split('kept').length - 1;
      const [waiting] = emergency
        .read()
        .flatMap((file) => ('received' in file ? [file.received] : []))
        .toSorted((one, other) => other.generation - one.generation);
      if (waiting) {
        const inFile = fingerprintOf(waiting.pair);
        // Killed between the file and the line that says so.
        if (inFile !== last) expect(stdout).not.toContain(inFile);
        last = inFile;
        continue;
      }
      const { state, now } = await store.read();
      expect(fingerprintOf(state!.pair)).toBe(last);
      if (!state?.claim) continue;
      // Killed with a claim: it is never taken for a token that was not sent.
      expect(isUncertain(state, now + 200_000)).toBe(true);
      seen.uncertain += 1;
      // As an administrator would, so that the next exchange has a token to send.
      await importNew(store, service);
      last = '';
    }
    expect(seen.kept).toBeGreaterThan(KILLS);
    expect(seen.uncertain).toBeGreaterThan(0);
  },
);

async function importNew(store: TokenStore, service: Service): Promise<void> {
  const document = await (await fetch(service.makeNewSet())).json();
  const outcome = await store.update(
    importPair({ pair: readPair(document)!, service: service.url, by: 'test/0', replace: true }),
  );
  expect(outcome).toBe('imported');
}
