/** Disks that are full, and folders that cannot be written. */
import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import { can, otherProcess } from './other-process.ts';
import { closing, folder, used } from './sqlite-support.ts';
import type { StoredTokens } from '../../../src/tokens/store/token-store.ts';
import { ageless, claiming } from './token-store-contract.ts';

const NOBODY = 65534;

describe('on a full disk', () => {
  const FULL = `
    import { execFileSync } from 'node:child_process';
    import { statSync } from 'node:fs';
    import { DatabaseSync } from 'node:sqlite';
    const store = openSqliteStore(path);
    const { set, generation } = await store.read();
    if ((await input()) === 'without reserve') {
      const database = new DatabaseSync(path);
      database.exec('VACUUM; PRAGMA journal_mode = DELETE');
      database.close();
    }
    const sizes = () => [path, path + '-journal'].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
    const before = sizes();
    execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=' + Math.max(...before)]);
    const said = [];
    const tried = (work) => work.then((result) => said.push(result), (error) => said.push(error.message));
    const claim = (attempt, generation) => ({ set, generation, attempt, lifeMs: 1, replica: 'r' });
    const long = { ...pairOf('x'), accessToken: 'a'.repeat(20_000), refreshToken: 'r'.repeat(20_000) };
    await tried(store.claim(claim('one', generation)));
    await tried(store.endAttempt('one', { outcome: 'uncertain', latencyMs: 1 }));
    await tried(store.claim(claim('two', generation)));
    await tried(store.save({ set, generation, attempt: 'two', pair: long, outcome: 'rotated', at: 2, latencyMs: 1 }));
    print([said, sizes().every((size, index) => size <= before[index])]);`;

  const limited = can('prlimit', '--version');

  test.runIf(limited)('on a full disk, claims, endings and saves use reserved space', async () => {
    const { path } = await used();
    const child = otherProcess(FULL, path);
    child.tell('with reserve');
    const [said, within] = JSON.parse(await child.line()) as [unknown[], boolean];
    expect(said).toEqual([{ exclusive: true }, null, { exclusive: true }, true]);
    expect(within).toBe(true);
    child.signal('SIGKILL');
    await child.ended;
    expect(await closing(openSqliteStore(path)).read()).toMatchObject({
      generation: 4,
      claim: null,
    });
  });

  test.runIf(limited)(
    'on a full disk, claims, endings and saves fail without the reserved space',
    async () => {
      const { path } = await used();
      const child = otherProcess(FULL, path);
      child.tell('without reserve');
      const [said, within] = JSON.parse(await child.line()) as [unknown[], boolean];
      expect(said[3] !== true || !within).toBe(true);
      child.signal('SIGKILL');
      await child.ended;
      const { generation, pair } = (await closing(openSqliteStore(path)).read())!;
      expect([generation, pair.accessToken]).toEqual(
        said[3] === true ? [4, 'a'.repeat(20_000)] : [3, 'access-b'],
      );
    },
  );
});

test.runIf(can('prlimit', '--version'))(
  'on a disk that accepts no byte every change fails, and succeeds once the disk accepts bytes again',
  async () => {
    const { path } = await used();
    const script = `
      import { execFileSync } from 'node:child_process';
      const limit = (bytes) => execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=' + bytes + ':']);
      const store = openSqliteStore(path);
      const { set, generation } = await store.read();
      const said = [];
      const tried = (work) => work.then((result) => said.push(result ?? null), (error) => said.push(error.message));
      const claim = { set, generation, attempt: 'one', lifeMs: 1, replica: 'r' };
      const pair = { set, generation, attempt: 'one', pair: pairOf('x'), outcome: 'rotated', at: 2, latencyMs: 1 };
      const before = JSON.stringify([(await store.read()).pair, await store.history(9)]);
      limit(0);
      await tried(store.claim(claim));
      await tried(store.endAttempt('c', { outcome: 'uncertain', latencyMs: 1 }));
      await tried(store.save(pair));
      await tried(store.import({ baseUrl: 'x', pair: pairOf('y'), replica: 'r', after: { set, generation } }));
      await tried(store.moveOut({ to: 'x', replica: 'r' }));
      said.push(JSON.stringify([(await store.read()).pair, await store.history(9)]) === before);
      limit('unlimited');
      await tried(store.claim(claim));
      await tried(store.save(pair));
      print(said);`;
    const said = JSON.parse(await otherProcess(script, path).line()) as unknown[];
    expect(said.slice(0, 5).every((one) => /full|disk I\/O|uncertain/.test(String(one)))).toBe(
      true,
    );
    expect(said.slice(5)).toEqual([true, { exclusive: true }, true]);
  },
);

describe('a store that cannot be written', () => {
  const SCRIPT = `
    const store = openSqliteStore(path);
    const { set, generation } = await store.read();
    const claim = { set, generation, attempt: 'm', lifeMs: 1, replica: 'r' };
    print(store.notices);
    print((await store.read()));
    print(await store.claim(claim).catch((error) => error.message));
    await input();
    print(await store.claim(claim).catch((error) => error.message));
    print(await store.save({ set, generation, attempt: 'm', pair: pairOf('m'), outcome: 'rotated', at: 6, latencyMs: 1 }));`;

  test('a store that cannot be written can be read, refuses writes, and works again once it can be written', async () => {
    const { path, stored } = await used();
    const place = join(path, '..');
    const isRoot = process.getuid?.() === 0;
    const files = readdirSync(place).map((name) => join(place, name));
    if (isRoot) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, place]);
    for (const file of files) chmodSync(file, 0o400);
    chmodSync(place, 0o500);
    const child = otherProcess(SCRIPT, path, { user: isRoot ? NOBODY : undefined });
    expect(await child.line()).toMatch(/cannot be written.*EACCES.*nothing is refreshed/);
    expect(ageless(JSON.parse(await child.line()) as StoredTokens)).toEqual(stored);
    expect(await child.line()).toMatch(/cannot be written.*EACCES/);
    chmodSync(place, 0o700);
    for (const file of files) chmodSync(file, 0o600);
    child.tell('writable');
    expect(JSON.parse(await child.line())).toEqual({ exclusive: true });
    expect(await child.line()).toBe('true');
    if (isRoot) execFileSync('chown', ['-R', '0:0', place]);
    expect(await closing(openSqliteStore(path)).read()).toMatchObject({ generation: 4 });
  });

  test('a store that cannot be written still shows that another process is exchanging its token', async () => {
    const { path } = await used();
    const place = join(path, '..');
    const holder = closing(openSqliteStore(path));
    const { set } = (await holder.read())!;
    await holder.claim(claiming(set, 'holder', 3));
    const script = `const store = openSqliteStore(path); print([store.notices.length, (await store.read()).claim.live]);`;
    chmodSync(place, 0o755);
    for (const name of readdirSync(place)) chmodSync(join(place, name), 0o644);
    const isRoot = process.getuid?.() === 0;
    const child = otherProcess(script, path, { user: isRoot ? NOBODY : undefined });
    expect(await child.line()).toBe(isRoot ? '[1,true]' : '[4,true]');
  });
});

test('a store with an interrupted transaction is refused while it cannot be written', async () => {
  const { path } = await used();
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA journal_mode = PERSIST; PRAGMA cache_size = 1; BEGIN IMMEDIATE;
    CREATE TABLE filler (x BLOB); INSERT INTO filler VALUES (randomblob(400000));`);
  const copy = join(folder(), 'tokens.db');
  for (const end of ['', '-journal']) {
    execFileSync('cp', [path + end, copy + end]);
    chmodSync(copy + end, 0o444);
  }
  database.close();
  chmodSync(join(copy, '..'), 0o555);
  const isRoot = process.getuid?.() === 0;
  const script = `try { openSqliteStore(path) } catch (error) { print(error.message) }`;
  const child = otherProcess(script, copy, { user: isRoot ? NOBODY : undefined });
  expect(await child.line()).toMatch(/was cut off.*without the right to write.*EACCES/);
  chmodSync(join(copy, '..'), 0o700);
});

test('a lock that cannot be read counts as held', async () => {
  const { path, stored } = await used();
  const isRoot = process.getuid?.() === 0;
  chmodSync(join(path, '..'), 0o755);
  for (const end of ['', '-journal']) chmodSync(path + end, 0o644);
  chmodSync(`${path}-lock`, 0o000);
  const script = `const store = openSqliteStore(path); print(store.notices); print(await store.read());`;
  const child = otherProcess(script, path, { user: isRoot ? NOBODY : undefined });
  expect(await child.line()).toMatch(/cannot be written.*EACCES/);
  expect(ageless(JSON.parse(await child.line()) as StoredTokens)).toEqual({
    ...stored,
    claim: { ...stored.claim, live: true },
    unanswered: 0,
  });
});
