/** Other processes that keep the file locked, or are stopped in the middle of a transaction. */
import { describe, expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import { closing, used } from './sqlite-support.ts';
import { otherProcess } from './other-process.ts';
import { ending, claiming, saving } from './token-store-contract.ts';

/** Takes the lock, and releases it when the test says so. */
const LOCKER = `
  import { DatabaseSync } from 'node:sqlite';
  const database = new DatabaseSync(path);
  database.exec('BEGIN EXCLUSIVE');
  print('locked');
  await input();
  database.exec('ROLLBACK');
  print('free');`;

describe('while another process has the file locked', () => {
  const calls = {
    read: (store) => store.read(),
    history: (store) => store.history(1),
    claim: (store, set) => store.claim(claiming(set, 'mine', 3)),
    settle: (store) => store.endAttempt('c', ending('unsent')),
    save: (store, set) => store.save(saving(set, 'mine', 3)),
    'a second handle': (_, __, path) => closing(openSqliteStore(path)).read(),
  } satisfies Record<
    string,
    (store: ReturnType<typeof openSqliteStore>, set: string, path: string) => Promise<unknown>
  >;

  test('no call blocks the event loop, and each one succeeds when the lock is released', async () => {
    const { path, set } = await used();
    const store = closing(openSqliteStore(path));
    const locker = otherProcess(LOCKER, path);
    await locker.line();
    const called = Object.values(calls).map((call) => call(store, set, path));
    // In a process that is blocked, no test could say so.
    locker.tell('go');
    await expect(Promise.all(called)).resolves.toBeDefined();
  });
});
