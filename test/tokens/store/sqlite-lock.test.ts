import { randomUUID } from 'node:crypto';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import type { TokenStore } from '../../../src/tokens/store/token-store.ts';
import { YEAR } from '../../support/random/manual-clock.ts';
import { pairOf } from '../../support/tokens/tokens.ts';
import { closing, folder } from './sqlite-support.ts';
import { HOLDER, otherProcess, type Other } from './other-process.ts';
import { AT, ending, importInto, claiming, saving } from './token-store-contract.ts';

async function held(): Promise<{ store: TokenStore; set: string; holder: Other; path: string }> {
  const path = join(folder(), 'tokens.db');
  const store = closing(openSqliteStore(path));
  const set = await importInto(store, 'link');
  const holder = otherProcess(HOLDER, path);
  expect(await holder.line()).toBe('true');
  return { store, set, holder, path };
}

describe('a refresh token that another process is exchanging', () => {
  test('a refresh token that a process is exchanging is not exchanged by another until its pair is saved, however long that takes', async () => {
    const { store, set, holder } = await held();
    // The claim expired after 1 ms: a process that is known to run needs no deadline.
    expect(await store.claim(claiming(set, 'mine'))).toBeUndefined();
    expect(await store.read()).toMatchObject({
      claim: { attempt: 'theirs', live: true },
      unanswered: 0,
    });
    holder.tell('save');
    expect(await holder.line()).toBe('true');
    expect(await store.read()).toMatchObject({
      generation: 2,
      pair: { accessToken: 'access-theirs' },
      claim: null,
    });
    expect(await store.claim(claiming(set, 'mine', 2))).toEqual({ exclusive: true });
  });

  test('a refresh token whose process was killed is uncertain, and can be exchanged by another at once', async () => {
    const { store, set, holder } = await held();
    holder.signal('SIGKILL');
    await holder.ended;
    expect(await store.read()).toMatchObject({
      claim: { attempt: 'theirs', live: false },
      unanswered: 1,
    });
    expect(await store.claim(claiming(set, 'mine'))).toEqual({ exclusive: true });
    expect(await store.read()).toMatchObject({
      claim: { attempt: 'mine', live: true },
      unanswered: 1,
    });
  });

  test('a refresh token whose process is stopped is not exchanged by another, and its pair is accepted when the process continues', async () => {
    const { store, set, holder } = await held();
    holder.signal('SIGSTOP');
    expect(await store.claim(claiming(set, 'mine'))).toBeUndefined();
    expect((await store.read())!.claim).toMatchObject({ attempt: 'theirs', live: true });
    holder.signal('SIGCONT');
    holder.tell('save');
    expect(await holder.line()).toBe('true');
    expect(await store.read()).toMatchObject({ generation: 2, claim: null });
  });

  test('a refresh token that is being exchanged cannot be moved; a new one can be imported, and exchanged once that exchange has ended', async () => {
    const { store, holder } = await held();
    await expect(store.moveOut({ to: 'x', replica: 'r' })).rejects.toThrow(/under way/);
    const set = await importInto(store, 'new');
    expect(await store.read()).toMatchObject({ set, claim: null });
    expect(await store.claim(claiming(set, 'mine', 2))).toBeUndefined();
    holder.tell('save');
    await holder.line();
    expect(await store.read()).toMatchObject({ set, generation: 2, imported: true });
    expect(await store.claim(claiming(set, 'mine', 2))).toBeDefined();
  });
});

test('of several processes that claim the same token at once, one gets the claim', async () => {
  const path = join(folder(), 'tokens.db');
  const store = closing(openSqliteStore(path));
  await importInto(store, 'link');
  const script = `
    const store = openSqliteStore(path);
    const { set, generation } = await store.read();
    print('ready');
    await input();
    const attempt = String(process.pid);
    print((await store.claim({ set, generation, attempt, lifeMs: 1, replica: 'r' })) !== undefined);
    await input();`;
  const others = [1, 2, 3, 4].map(() => otherProcess(script, path));
  for (const other of others) expect(await other.line()).toBe('"ready"');
  for (const other of others) other.tell('go');
  const claimed = await Promise.all(others.map((other) => other.line()));
  expect(claimed.filter((line) => line === 'true')).toHaveLength(1);
});

test('two handles of one process exclude each other too, and reading never removes a claim', async () => {
  const path = join(folder(), 'tokens.db');
  const [one, other] = [closing(openSqliteStore(path)), closing(openSqliteStore(path))];
  const set = await importInto(one, 'link');
  for (let round = 1; round <= 10; round += 1) {
    const attempt = randomUUID();
    const claims = await Promise.all([
      one.claim(claiming(set, attempt, round)),
      other.read(),
      other.claim(claiming(set, `other ${attempt}`, round)),
    ]);
    expect([claims[0], claims[2]].filter(Boolean)).toHaveLength(1);
    const winner = claims[0] ? attempt : `other ${attempt}`;
    expect((await one.read())!.claim).toMatchObject({ attempt: winner, live: true });
    expect((await other.read())!.claim).toMatchObject({ attempt: winner, live: true });
    await (claims[0] ? one : other).save(saving(set, winner, round));
  }
});

test('while a pair cannot be saved, its claim stays', async () => {
  const path = join(folder(), 'tokens.db');
  const [one, other] = [closing(openSqliteStore(path)), closing(openSqliteStore(path))];
  const set = await importInto(one, 'link');
  await one.claim(claiming(set, 'a'));
  renameSync(path, `${path}.away`);
  await expect(one.save(saving(set, 'a'))).rejects.toThrow(/cannot be written.*gone/);
  await expect(one.save(saving(set, 'a'))).rejects.toThrow(/cannot be written.*gone/);
  renameSync(`${path}.away`, path);
  expect(await other.claim(claiming(set, 'b'))).toBeUndefined();
  expect(await one.save(saving(set, 'a'))).toBe(true);
  expect(await other.read()).toMatchObject({ generation: 2, pair: pairOf('a') });
  expect(await other.claim(claiming(set, 'b', 2))).toBeDefined();
});

test('closing the store releases the lock, and the exchange stays uncertain', async () => {
  const path = join(folder(), 'tokens.db');
  const [one, other] = [openSqliteStore(path), closing(openSqliteStore(path))];
  const set = await importInto(one, 'link');
  await one.claim(claiming(set, 'a'));
  await one.close();
  expect((await other.read())!.claim).toMatchObject({ attempt: 'a', live: false });
  expect(await other.claim(claiming(set, 'b'))).toEqual({ exclusive: true });
});

test('if the ending of an exchange cannot be recorded, the lock is released and the exchange is uncertain', async () => {
  const path = join(folder(), 'tokens.db');
  const [one, other] = [closing(openSqliteStore(path)), closing(openSqliteStore(path))];
  const set = await importInto(one, 'link');
  await one.claim(claiming(set, 'a'));
  renameSync(path, `${path}.away`);
  await expect(one.endAttempt('a', ending('unsent'))).rejects.toThrow(/cannot be written.*gone/);
  renameSync(`${path}.away`, path);
  expect((await other.read())!.claim).toMatchObject({ attempt: 'a', live: false });
  expect(await other.claim(claiming(set, 'b'))).toBeDefined();
});

test('a deleted lock file is created again, and no process locks a file that others cannot find', async () => {
  const path = join(folder(), 'tokens.db');
  const [one, other] = [closing(openSqliteStore(path)), closing(openSqliteStore(path))];
  const set = await importInto(one, 'link');
  await one.claim(claiming(set, 'a'));
  await one.endAttempt('a', ending('unsent'));
  rmSync(`${path}-lock`);
  expect(await other.claim(claiming(set, 'b'))).toBeDefined();
  expect(await one.claim(claiming(set, 'c'))).toBeUndefined();
  expect((await one.read())!.claim).toMatchObject({ attempt: 'b', live: true });
});

describe('a lock file that is deleted during an exchange', () => {
  const LIFE_MS = 150_000;

  test('after the lock file is deleted, no other process claims the token as long as the answer may come', async () => {
    const { other, one, set, open, pass } = await deleted();
    expect(await other.claim(claiming(set, 'b'))).toBeUndefined();
    expect((await other.read())!.claim).toMatchObject({ attempt: 'a', live: true });
    const late = open();
    pass(LIFE_MS - 1);
    expect((await late.read())!.claim).toMatchObject({ attempt: 'a', live: true });
    expect(await late.claim(claiming(set, 'c'))).toBeUndefined();
    expect(await one.save(saving(set, 'a'))).toBe(true);
    expect(await late.read()).toMatchObject({ generation: 2, pair: pairOf('a'), claim: null });
    expect(await late.claim(claiming(set, 'd', 2))).toEqual({ exclusive: true });
  });

  test('after the lock file is deleted and the answer is late, the exchange is uncertain: a pair may still come', async () => {
    const { other, set, pass } = await deleted();
    pass(LIFE_MS);
    expect((await other.read())!.claim).toMatchObject({ attempt: 'a', live: false });
    expect(await other.claim(claiming(set, 'b'))).toEqual({ exclusive: false });
  });

  test.each([
    ['was a year ahead at the claim', YEAR, 0],
    ['is set back by a year after the claim', 0, -YEAR],
  ])(
    'after the lock file is deleted, a claim ends after its own length, although the wall clock %s',
    async (_, claimedAhead, readAhead) => {
      const { set, open, pass, setAhead } = await deleted(claimedAhead);
      const late = open();
      setAhead(readAhead);
      expect((await late.read())!.claim).toMatchObject({ attempt: 'a', live: true });
      pass(LIFE_MS - 1);
      expect(await late.claim(claiming(set, 'b'))).toBeUndefined();
      pass(1);
      expect((await late.read())!.claim).toMatchObject({ attempt: 'a', live: false });
      expect(await late.claim(claiming(set, 'b'))).toEqual({ exclusive: false });
    },
  );

  test('deleting the lock file has no effect once the exchange has ended', async () => {
    const { one, other, set } = await deleted();
    await one.endAttempt('a', ending('uncertain'));
    expect((await other.read())!.claim).toMatchObject({ attempt: 'a', live: false });
    expect(await other.claim(claiming(set, 'b'))).toEqual({ exclusive: true });
  });
});

async function deleted(claimedAhead = 0) {
  const path = join(folder(), 'tokens.db');
  let [passed, ahead] = [0, claimedAhead];
  const clock = { now: () => AT + passed + ahead, elapsed: () => passed };
  const open = () => closing(openSqliteStore(path, clock));
  const [one, other] = [open(), open()];
  const set = await importInto(one, 'link');
  expect(await one.claim(claiming(set, 'a'))).toEqual({ exclusive: true });
  rmSync(`${path}-lock`);
  return {
    path,
    one,
    other,
    set,
    open,
    pass: (ms: number) => void (passed += ms),
    setAhead: (ms: number) => void (ahead = ms),
  };
}
