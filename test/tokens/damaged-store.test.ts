/** A SQLite store whose document is removed or altered while a gateway runs, and the rescue file. */
import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { DAY, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { startKept, startKeptOverSandbox } from '../support/tokens/kept.ts';
import { codesOf, openTestRescue, PERSON, watchStore } from '../support/tokens/tokens.ts';
import { quickFolder } from '../support/quick-folder.ts';

describe.each([
  ['altered', 'UPDATE tokens SET document = substr(document, 1, length(document) - 1)'],
  ['deleted', 'DELETE FROM tokens'],
  ['in a table that was dropped', 'DROP TABLE tokens'],
])('a document that is %s', (_, damage) => {
  test('is reported, the newest pair is in the rescue file, and callers are served', async () => {
    const { path, newest, clock, ask, stop, rescued, logged } = await start();
    const { undo } = changed(path, damage);
    await clock.pass(MINUTE);
    expect(logged).toContainEqual(expect.objectContaining({ level: 60, trouble: 'unsaved' }));
    expect(rescued()).toContain(newest.pair.refreshToken);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    void clock.pass(MINUTE);
    await stop();
    undo();
  });

  test('leaves the newest pair in the rescue file at SIGTERM', async () => {
    const { path, newest, clock, stop, rescued } = await start();
    const { undo } = changed(path, damage);
    void clock.pass(MINUTE);
    await stop();
    expect(rescued()).toContain(newest.pair.refreshToken);
    undo();
  });
});

test('an older document is replaced by the newest pair, so that the next start reads it', async () => {
  const { path, newest, older, clock, sandbox, expire, ask, rescued } = await start();
  change(path, older);
  await clock.pass(MINUTE);
  expect(await readAnew(path)).toMatchObject({ generation: 3, pair: newest.pair, surplus: 0 });
  expect(rescued()).toBe('');
  expire();
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(Array(3).fill('answered'));
});

test('an older document is replaced by the newest pair at SIGTERM if the gateway has not noticed before', async () => {
  const { path, newest, older, stop, rescued } = await start();
  change(path, older);
  await stop();
  expect(await readAnew(path)).toMatchObject({ generation: 3, pair: newest.pair });
  expect(rescued()).toBe('');
});

test('a store that takes the pair and does not return it keeps the rescue file full, and callers are served', async () => {
  const { path, newest, older, clock, store, ask, rescued, gateway, logged } = await start();
  const { save } = store;
  store.save = async () => true;
  change(path, older);
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
  const { rescue, rescued, directory } = openTestRescue();
  const store = watchStore((now) => openSqliteStore(path, { now }));
  const kept = await startKeptOverSandbox({ store, rescue });
  const expire = () => void (kept.service.ahead += 2 * DAY);
  await kept.clock.asleep();
  await kept.ask(PERSON);
  const older = `UPDATE tokens SET document = '${documentIn(path).replaceAll("'", "''")}'`;
  expire();
  expect(codesOf(await kept.ask(PERSON))).toEqual([]);
  const newest = (await store.read())!;
  expect(newest.generation).toBe(3);
  return { ...kept, path, directory, newest, older, expire, rescued };
}

function change(path: string, statements: string): void {
  const database = new DatabaseSync(path);
  database.exec(statements);
  database.close();
}

function changed(path: string, damage: string): { undo: () => void } {
  const document = documentIn(path).replaceAll("'", "''");
  change(path, damage);
  const undone = `
    DROP TABLE IF EXISTS tokens;
    CREATE TABLE tokens (id INTEGER PRIMARY KEY CHECK (id = 1), document TEXT NOT NULL) STRICT;
    INSERT INTO tokens VALUES (1, '${document}')`;
  return { undo: () => change(path, undone) };
}

function documentIn(path: string): string {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database.prepare('SELECT document FROM tokens').get();
  database.close();
  return row!['document'] as string;
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
