import { statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import { pairOf } from '../../support/tokens/tokens.ts';
import { bytesIn, closing, folder, used } from './sqlite-support.ts';
import { otherProcess } from './other-process.ts';
import { look, claiming } from './token-store-contract.ts';

const STORES = 7;
const BETWEEN_MS = 40;

/** Opens one store after another, and prints the notices and what it read there. */
const OPENER = `
  import { createSealer } from ${JSON.stringify(join(process.cwd(), 'src/tokens/store/seal.ts'))};
  const sealer = createSealer([Buffer.alloc(32, 7)]);
  print('ready');
  const [count, start] = (await input()).split(' ').map(Number);
  const said = [];
  for (let index = 0; index < count; index += 1) {
    // At the same moment as the others, or they would rarely collide.
    while (Date.now() < start + index * ${BETWEEN_MS});
    try {
      const store = openSqliteStore(path + '-' + index, process.argv[2] === 'sealed' ? { sealer } : {});
      said.push([...store.notices, (await store.read())?.pair.refreshToken ?? null]);
      await store.close();
    } catch (error) {
      said.push(error.message);
    }
  }
  print(said);`;

async function openedAtOnce(path: string, args: string[] = []): Promise<unknown[]> {
  const others = [1, 2, 3].map(() => otherProcess(OPENER, path, { args }));
  for (const other of others) expect(await other.line()).toBe('"ready"');
  for (const other of others) other.tell(`${STORES} ${Date.now() + BETWEEN_MS}`);
  const lines = await Promise.all(others.map((other) => other.line()));
  return lines.flatMap((line) => JSON.parse(line) as unknown[]);
}

/** The lines of three processes for each store: no notice, and this token. */
function allRead(token: string | null): (typeof token)[][] {
  return Array.from({ length: 3 * STORES }, () => [token]);
}

describe('several processes that open a store at the same time', () => {
  test('several processes that open a store at the same time create it once, without any notice', async () => {
    const said = await openedAtOnce(join(folder(), 'tokens'));
    expect(said).toEqual(allRead(null));
  });

  test('several processes that open a store at the same time encrypt it, and leave no readable token', async () => {
    const path = join(folder(), 'tokens');
    for (let index = 0; index < STORES; index += 1) await used(`${path}-${index}`);
    const said = await openedAtOnce(path, ['sealed']);
    expect(said).toEqual(allRead('refresh-b'));
    expect(Object.values(bytesIn(dirname(path))).join()).not.toMatch(/access-|refresh-/);
    const sealer = createSealer([Buffer.alloc(32, 7)]);
    const store = closing(openSqliteStore(`${path}-0`, { sealer }));
    expect(await store.read()).toMatchObject({ pair: pairOf('b') });
  });
});

test('a store can be opened as soon as another process has ended its transaction', async () => {
  const { path, stored } = await used();
  const script = `
    import { DatabaseSync } from 'node:sqlite';
    const database = new DatabaseSync(path);
    database.exec('BEGIN EXCLUSIVE');
    print('begun');
    await input();
    database.exec('ROLLBACK');`;
  const other = otherProcess(script, path);
  await other.line();
  const opener = otherProcess(
    `print('opening'); print((await openSqliteStore(path).read()).generation)`,
    path,
  );
  expect(await opener.line()).toBe('"opening"');
  other.tell('end');
  expect(await opener.line()).toBe(String(stored.generation));
});

test('a token is exchanged by one process even if the store is opened under another name', async () => {
  const { path, set } = await used();
  const link = join(folder(), 'link');
  symlinkSync(path, link);
  const [one, other] = [closing(openSqliteStore(path)), closing(openSqliteStore(link))];
  expect(await one.claim(claiming(set, 'one', 3))).toBeDefined();
  expect((await other.read())!.claim).toMatchObject({ attempt: 'one', live: true });
  expect(await other.claim(claiming(set, 'other', 3))).toBeUndefined();
});

describe('a process that is killed within a transaction', () => {
  /** Writes so much that a part of it is in the file before it is committed. */
  const CUT = `
    import { DatabaseSync } from 'node:sqlite';
    const database = new DatabaseSync(path);
    database.exec(\`PRAGMA journal_mode = PERSIST; PRAGMA cache_size = 1; BEGIN IMMEDIATE;
      UPDATE tokens SET document = 'cut'; CREATE TABLE filler (x BLOB);
      INSERT INTO filler VALUES (randomblob(400000)); INSERT INTO filler VALUES (randomblob(400000));\`);
    print('cut');
    await input();`;

  async function cut(path: string) {
    const other = otherProcess(CUT, path);
    await other.line();
    other.signal('SIGKILL');
    await other.ended;
  }

  test('a process that is killed within a transaction leaves the store as it was, for processes that open it', async () => {
    const { path, stored } = await used();
    const { size } = statSync(path);
    await cut(path);
    expect(statSync(path).size).toBeGreaterThan(size);
    expect(await look(closing(openSqliteStore(path, { readOnly: true })))).toEqual(stored);
    expect(await look(closing(openSqliteStore(path)))).toEqual(stored);
  });

  test('a process that is killed within a transaction leaves the store as it was, for processes that had it open', async () => {
    const { path, stored, set } = await used();
    const store = closing(openSqliteStore(path));
    await cut(path);
    expect(await look(store)).toEqual(stored);
    expect(await store.claim(claiming(set, 'next', 3))).toBeDefined();
  });
});
