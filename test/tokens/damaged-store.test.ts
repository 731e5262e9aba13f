/** A SQLite store whose rows are removed or altered while a gateway runs, and the rescue file. */
import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { rescuedIn } from '../support/tokens/custody-world.ts';
import { DAY, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { startKept, startKeptOverSandbox } from '../support/tokens/kept.ts';
import { codesOf, openTestRescue, PERSON, watchStore } from '../support/tokens/tokens.ts';
import { quickFolder } from '../support/quick-folder.ts';

const NEWEST = 'WHERE generation = (SELECT max(generation) FROM token_pair)';

describe.each([
  ['deleted', `DELETE FROM token_pair ${NEWEST}`],
  ['deleted with all others', 'DELETE FROM token_pair'],
])('a pair row that is %s', (_, damage) => {
  test('is restored so that the next start reads it, and the rescue file is emptied then', async () => {
    const { path, newest, clock, sandbox, expire, ask, rescued, logged } = await start();
    change(path, damage);
    await clock.pass(MINUTE);
    expect(logged).toContainEqual(
      expect.objectContaining({
        level: 60,
        trouble: 'unsaved',
        msg: expect.stringMatching(/can no longer be read.*`tokens recover`/),
      }),
    );
    expect(await readAnew(path)).toMatchObject({ generation: 3, pair: newest.pair, surplus: 0 });
    expect(rescued()).toBe('');
    expire();
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(Array(3).fill('answered'));
  });

  test('is restored at SIGTERM if the gateway has not noticed before', async () => {
    const { path, newest, stop, rescued } = await start();
    change(path, damage);
    await stop();
    expect(await readAnew(path)).toMatchObject({ generation: 3, pair: newest.pair });
    expect(rescued()).toBe('');
  });
});

describe.each([
  ['a set row that was altered', 'UPDATE token_set SET head = head + 1'],
  ['a pair row that was altered', `UPDATE token_pair SET saved_at = 1 ${NEWEST}`],
  ['a set row that was deleted', 'DELETE FROM token_pair; DELETE FROM token_set'],
  ['a table that was dropped', 'DROP TABLE fingerprint'],
])('%s', (_, damage) => {
  test('puts the newest pair into the rescue file at SIGTERM, unless the store shows the pair again', async () => {
    const { path, newest, clock, stop, rescued } = await start();
    change(path, damage);
    void clock.pass(MINUTE);
    await stop();
    const again = await readAnew(path).catch(() => null);
    const isBack = again?.pair.refreshToken === newest.pair.refreshToken;
    expect(isBack || rescued().includes(newest.pair.refreshToken)).toBe(true);
  });
});

test('a store that takes the pair and does not return it keeps the rescue file full, and callers are served', async () => {
  const { path, newest, clock, store, ask, rescued, gateway, logged } = await start();
  const { save } = store;
  store.save = async () => true;
  change(path, `DELETE FROM token_pair ${NEWEST}`);
  await clock.pass(MINUTE);
  expect(rescued()).toContain(newest.pair.refreshToken);
  expect(logged).not.toContainEqual(
    expect.objectContaining({ msg: 'the new token pair is saved now' }),
  );
  expect(await gateway.metrics.text()).toMatch(/trouble="unsaved"[^\n]*\} 1\n/);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  store.save = save;
  await clock.pass(SECOND);
  expect(rescued()).toBe('');
  expect(await readAnew(path)).toMatchObject({ generation: 3, pair: newest.pair });
});

test('a store that cannot be read at SIGTERM leaves the pair in the rescue file, which the next start empties', async () => {
  const { newest, store, stop, rescued, directory, clock, sandbox } = await start();
  store.failing.add('read');
  await stop();
  expect(rescued()).toContain(newest.pair.refreshToken);
  store.failing.clear();
  const { rescue } = openTestRescue(directory);
  const next = await startKept({ url: sandbox.url }, { store, clock, rescue });
  expect(codesOf(await next.ask(PERSON))).toEqual([]);
  await clock.pass(MINUTE);
  expect(rescued()).toBe('');
});

/** At generation 3. */
async function start() {
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'tokens.db');
  const { rescue, directory } = openTestRescue();
  const store = watchStore((now) => openSqliteStore(path, { now }));
  const kept = await startKeptOverSandbox({ store, rescue });
  const expire = () => void (kept.service.ahead += 2 * DAY);
  await kept.clock.asleep();
  await kept.ask(PERSON);
  expire();
  expect(codesOf(await kept.ask(PERSON))).toEqual([]);
  const newest = (await store.read())!;
  expect(newest.generation).toBe(3);
  const rescued = () => rescuedIn(directory).trim();
  return { ...kept, path, directory, newest, expire, rescued };
}

function change(path: string, statements: string): void {
  const database = new DatabaseSync(path);
  database.exec(statements);
  database.close();
}

/** As a start does. */
async function readAnew(path: string) {
  const store = openSqliteStore(path);
  try {
    return await store.read();
  } finally {
    await store.close();
  }
}
