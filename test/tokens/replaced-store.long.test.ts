import { copyFileSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { readTokenSet } from '../../src/tokens/token-set.ts';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import { DAY, ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { timedDatabase } from '../support/tokens/timed-store.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';
import { startKept, startKeptOverSandbox, type Kept } from '../support/tokens/kept.ts';
import { codesOf, pairOf, PERSON, startScripted, watchStore } from '../support/tokens/tokens.ts';
import { quickFolder } from '../support/quick-folder.ts';

const PUT = [
  ['written over it', copyFileSync],
  ['moved to its place', renameSync],
] as const;

describe.each(PUT)('an older copy of the store that is %s while the gateway runs', (_, put) => {
  test('the newest pair is saved into it without an exchange, and the operator is warned', async () => {
    const { path, backup, clock, store, sandbox, ask, logged } = await startAhead();
    const newest = (await store.read())!;
    put(backup, path);
    expect(await store.read()).toMatchObject({ generation: 2 });
    await clock.pass(MINUTE);
    const { set, generation, pair } = newest;
    expect(generation).toBe(5);
    expect(await store.read()).toMatchObject({ set, generation, pair, lost: false, claim: null });
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(Array(4).fill('answered'));
    expect(logged).toContainEqual(
      expect.objectContaining({
        level: 60,
        trouble: 'unsaved',
        msg: expect.stringMatching(/replaced by an older copy/),
      }),
    );
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });

  test('no caller gets an error if the access token expires before that', async () => {
    const { path, backup, expire, store, sandbox, ask } = await startAhead();
    put(backup, path);
    expire();
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 6, claim: null });
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(Array(5).fill('answered'));
  });

  test('a copy that cannot be written prevents exchanges until it has the newest pair, and the log says why', async () => {
    const { path, backup, expire, clock, store, sandbox, ask, gateway, logged } =
      await startAhead();
    store.failing.add('save');
    put(backup, path);
    expire();
    const started = clock.elapsed();
    for (let request = 0; request < 3; request += 1) {
      const answer = await ask(PERSON);
      expect(codesOf(answer)).toEqual(['INTERNAL_SERVER_ERROR']);
      expect(loggedFor(logged, answer)).toMatch(/replaced by an older copy.*operator/);
    }
    expect(clock.elapsed()).toBe(started);
    expect(await gateway.metrics.text()).toMatch(/trouble="unsaved"[^\n]*\} 1\n/);
    await clock.pass(MINUTE);
    expect(sandbox.exchanges).toHaveLength(4);

    store.failing.clear();
    await clock.pass(SECOND);
    expect(await store.read()).toMatchObject({ generation: 5 });
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 6 });
    expect(await gateway.metrics.text()).not.toMatch(/trouble="unsaved"[^\n]*\} 1\n/);
  });

  test('a pair that this gateway only read is saved into it too', async () => {
    const first = await startAhead();
    await first.stop();
    const { clock, sandbox, path, backup } = first;
    const store = watchStore((now) => openSqliteStore(path, { now }));
    const newest = await store.read();
    const second = await startKept({ url: sandbox.url }, { clock, store });
    await clock.asleep();
    put(backup, path);
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ generation: 5, pair: newest!.pair });
    expect(codesOf(await second.ask(PERSON))).toEqual([]);
  });
});

describe('an older copy', () => {
  test('the new pair is saved into an older copy that is put back during an exchange', async () => {
    const { path, backup, expire, store, sandbox, ask } = await startAhead();
    expire();
    const exchange = sandbox.tokenAnswers.hold('after');
    const asked = ask(PERSON);
    await exchange.arrived;
    copyFileSync(backup, path);
    exchange.release();
    expect(codesOf(await asked)).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 6, surplus: 0, claim: null });
  });

  test('nothing is saved into an older copy if the newest pair is lost', async () => {
    const { path, backup, expire, clock, store, sandbox, ask } = await startAhead();
    sandbox.makeNewSet();
    expire();
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
    copyFileSync(backup, path);
    await clock.pass(MINUTE);
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
    expect(await store.read()).toMatchObject({ generation: 2 });
    expect(sandbox.exchanges).toHaveLength(5);
  });

  test('a loss that is missing in an older copy is recorded again, and nothing is sent', async () => {
    const { path, backup, expire, clock, store, sandbox, ask } = await startAhead();
    copyFileSync(path, backup);
    sandbox.makeNewSet();
    expire();
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
    copyFileSync(backup, path);
    expect(await store.read()).toMatchObject({ generation: 5, lost: false });
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ generation: 5, lost: true, claim: null });
    expect(sandbox.exchanges).toHaveLength(5);
  });

  test('two pairs of one generation are both kept, and the one in the store is used', async () => {
    const { path, backup, clock, store, ask, lastBearer, gateway } = await startAhead();
    const ours = (await store.read())!;
    const { set, attempt } = ours;
    const copy = openSqliteStore(backup, { now: clock.now });
    const [pair, exchange] = [pairOf('second'), { outcome: 'rotated', latencyMs: 1 } as const];
    const theirs = { set, generation: 4, attempt: 'theirs', pair, at: clock.now(), ...exchange };
    await copy.save(theirs);
    await copy.close();
    copyFileSync(backup, path);
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ generation: 5, pair, surplus: 1 });
    expect(await store.holds({ ...theirs, attempt, pair: ours.pair })).toBe(true);
    await ask(PERSON);
    expect(lastBearer()).toBe(pair.accessToken);
    expect(await gateway.metrics.text()).toMatch(/trouble="second-pair"[^\n]*\} 1\n/);
  });

  test('a pair that is saved into an older copy stays uncertain', async () => {
    const { path, backup } = places();
    const service = await startScripted();
    const store = watchStore((now) => openSqliteStore(path, { now }));
    const { clock, ask } = await startKept(service, { store });
    await clock.asleep();
    await ask(PERSON);
    copyFileSync(path, backup);
    service.expire();
    await ask(PERSON);
    service.tokenAnswers.next('drop-before');
    await clock.pass(0.7 * DAY);
    expect(await store.read()).toMatchObject({ generation: 3, unanswered: 1 });
    const before = service.exchanges.length;

    copyFileSync(backup, path);
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ generation: 3 });
    await clock.pass(0.1 * DAY);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(service.exchanges).toHaveLength(before);
    await clock.pass(0.2 * DAY);
    expect(service.exchanges).toHaveLength(before + 1);
    expect(await store.read()).toMatchObject({ generation: 4, unanswered: 0 });
  });
});

describe("the store's file, removed while the gateway runs", () => {
  test('the gateway serves without an exchange until there is a store for the newest pair', async () => {
    const { path, backup, expire, clock, store, sandbox, ask, gateway, logged } =
      await startAhead();
    const newest = (await store.read())!;
    rmSync(path);
    await clock.pass(MINUTE);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await gateway.metrics.text()).toMatch(/trouble="unsaved"[^\n]*\} 1\n/);
    expect(logged).toContainEqual(
      expect.objectContaining({
        level: 60,
        trouble: 'unsaved',
        msg: expect.stringMatching(/file of the token store.*is gone/),
      }),
    );
    expire();
    const started = clock.elapsed();
    const answer = await ask(PERSON);
    expect(codesOf(answer)).toEqual(['INTERNAL_SERVER_ERROR']);
    expect(loggedFor(logged, answer)).toMatch(/file of the token store.*gone.*operator/);
    expect(clock.elapsed()).toBe(started);
    expect(sandbox.exchanges).toHaveLength(4);

    renameSync(backup, path);
    await clock.pass(SECOND);
    expect(await store.read()).toMatchObject({ generation: 5, pair: newest.pair });
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 6 });
  });

  test('the newest pair is saved into a new and empty store', async () => {
    const { path, clock, store, ask } = await startAhead();
    const newest = (await store.read())!;
    for (const end of ['', '-journal', '-lock']) rmSync(path + end);
    await openSqliteStore(path).close();
    await clock.pass(MINUTE);
    const { set, pair } = newest;
    expect(await store.read()).toMatchObject({ set, generation: 5, pair });
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });

  test('another set that is imported into a new store is used, and nothing stays unsaved', async () => {
    const { path, clock, store, sandbox, gateway, logged } = await startAhead();
    for (const end of ['', '-journal', '-lock']) rmSync(path + end);
    await clock.pass(MINUTE);
    const elsewhere = openSqliteStore(`${path}-new`, { now: clock.now });
    const imported = { pair: pairOf('imported'), replica: 'hand', after: null };
    await elsewhere.import({ ...imported, baseUrl: sandbox.url });
    await elsewhere.close();
    // Refreshed at once, as after every import; the sandbox never issued such a token.
    renameSync(`${path}-new`, path);
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ pair: pairOf('imported'), lost: true });
    expect(await gateway.metrics.text()).not.toMatch(/trouble="unsaved"[^\n]*\} 1\n/);
    expect(saved(logged)).toHaveLength(1);
  });
});

describe('an older copy that holds another set', () => {
  test.each(PUT)(
    'into a copy that is %s the newest pair is saved, as the set in use',
    async (_, put) => {
      const { path, other, clock, store, sandbox, ask, logged, gateway } = await startReplacedSet();
      const newest = (await store.read())!;
      expect(newest.generation).toBe(4);
      const before = sandbox.exchanges.length;
      put(other, path);
      await clock.pass(MINUTE);
      const { set, pair, generation } = newest;
      expect(await store.read()).toMatchObject({ set, pair, generation, lost: false, claim: null });
      expect(codesOf(await ask(PERSON))).toEqual([]);
      expect(sandbox.exchanges).toHaveLength(before);
      expect(alarms(logged)).toEqual([
        expect.stringMatching(/^The token store was replaced by an older copy/),
      ]);
      expect(await gateway.metrics.text()).toMatch(/^recruiting_token_store_losses_total 1$/m);
    },
  );

  test('a copy that cannot be written is not used: the gateway serves with its own pair until that is saved', async () => {
    const { path, other, expire, clock, store, sandbox, ask, logged } = await startReplacedSet();
    const { pair } = (await store.read())!;
    const before = sandbox.exchanges.length;
    store.failing.add('save');
    copyFileSync(other, path);
    await clock.pass(MINUTE);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expire();
    expect(codesOf(await ask(PERSON))).toEqual(['INTERNAL_SERVER_ERROR']);
    expect(sandbox.exchanges).toHaveLength(before);
    store.failing.clear();
    await clock.pass(SECOND);
    expect(await store.read()).toMatchObject({ generation: 4, pair });
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(sandbox.exchanges.at(-1)).toMatchObject({ refreshToken: pair.refreshToken });
    expect(alarms(logged)).toHaveLength(1);
  });

  test('a copy that a hanging request had read is not used after another read repaired it', async () => {
    const { path, other, clock, store, service, sandbox, ask, logged, lastBearer } =
      await startReplacedSet();
    const old = openSqliteStore(other);
    const { pair } = (await old.read())!;
    await old.close();
    const { read } = store;
    const late = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    store.read = async () => {
      store.read = read;
      const stored = await read();
      reached.resolve();
      await late.promise;
      return stored;
    };
    copyFileSync(other, path);
    service.ahead += 2 * DAY;
    const asked = ask(personUnlikeOthers());
    await reached.promise;
    await clock.pass(11 * SECOND);
    expect(codesOf(await asked)).toEqual(['INTERNAL_SERVER_ERROR']);
    late.resolve();
    expect(codesOf(await ask(personUnlikeOthers()))).toEqual([]);
    expect(lastBearer()).not.toBe(pair.accessToken);
    expect(await read()).toMatchObject({ generation: 5 });
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).not.toContain('invalid-grant');
    expect(alarms(logged)).toHaveLength(1);
  });

  test('the copy is used, with an alarm, if the set of the gateway is lost', async () => {
    const { path, other, expire, clock, store, sandbox, ask, logged } = await startReplacedSet();
    sandbox.makeNewSet();
    expire();
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
    copyFileSync(other, path);
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ generation: 2 });
    expect(alarms(logged)).toContainEqual(expect.stringContaining('continues with the other one'));
  });

  test('a lower generation alone does not make a copy: a withdrawn import raises no alarm', async () => {
    const { clock, store, sandbox, ask, logged } = await startAhead();
    const before = (await store.read())!;
    const imported = await store.import({
      baseUrl: sandbox.url,
      pair: pairOf('refused'),
      replica: 'hand',
      after: before,
    });
    await clock.pass(MINUTE);
    expect(sandbox.exchanges.at(-1)).toMatchObject({ refreshToken: 'refresh-refused' });
    if (imported.kind === 'imported') await store.withdraw(imported.stored.set);
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ generation: before.generation });
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(alarms(logged)).toEqual([expect.stringMatching(/^The recruiting service refuses/)]);
  });
});

describe('an older copy of the database that a gateway starts on', () => {
  test('it asks the other replicas first, and sends no refresh token whose next pair one of them saves again', async () => {
    const { clock, database, older, newer, sandbox } = await startOnOlderCopy();
    const store = watchStore(() => ({
      ...older,
      askOthers: answering(async () => {
        await clock.sleep(SECOND);
        await database.open().save(newer);
      }),
    }));
    const { ask, logged } = await startKept(sandbox, { clock, store });
    await clock.asleep();
    const asked = ask(PERSON);
    await clock.pass(3 * SECOND);
    expect(codesOf(await asked)).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 3, claim: null, lost: false });
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(Array(2).fill('answered'));
    expect(alarms(logged)).toEqual([]);
  });

  test('if nobody answers within two seconds, it refreshes with the refresh token that the store has', async () => {
    const { clock, older, sandbox } = await startOnOlderCopy({ isBehind: false });
    let times = 0;
    const store = watchStore(() => ({
      ...older,
      askOthers: answering(async () => void (times += 1)),
    }));
    const { ask } = await startKept(sandbox, { clock, store });
    await clock.asleep();
    const asked = ask(PERSON);
    await clock.pass(SECOND);
    expect(sandbox.exchanges).toHaveLength(1);
    await clock.pass(2 * SECOND);
    expect(codesOf(await asked)).toEqual([]);
    expect(times).toBe(1);
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(Array(2).fill('answered'));
  });

  test('if the others cannot be asked, nothing is sent', async () => {
    const { clock, older, sandbox } = await startOnOlderCopy();
    const failing = new Error('the database server is down');
    const store = watchStore(() => ({ ...older, askOthers: () => Promise.reject(failing) }));
    const { ask } = await startKept(sandbox, { clock, store });
    await clock.asleep();
    expect(codesOf(await ask(PERSON))).toEqual(['INTERNAL_SERVER_ERROR']);
    expect(sandbox.exchanges).toHaveLength(2);
  });
});

describe('another store', () => {
  test.each(PUT)(
    'a store that is %s is used once the newest pair is saved behind it',
    async (_, put) => {
      const { path, clock, store, sandbox, logged } = await startAhead();
      const newest = (await store.read())!;
      const pair = await otherStore(`${path}-other`, sandbox.url, clock);
      put(`${path}-other`, path);
      await clock.pass(MINUTE);
      expect(sandbox.exchanges.at(-1)).toMatchObject({ refreshToken: pair.refreshToken });
      expect(alarms(logged)[0]).toMatch(
        /^The token store was replaced by another one, with other tokens/,
      );
      expect(saved(logged)).toHaveLength(1);
      const after = await store.read();
      const known = { pair: newest.pair, replica: 'hand', after };
      expect(await store.import({ baseUrl: sandbox.url, ...known })).toMatchObject({
        kind: 'known',
        generation: newest.generation,
      });
    },
  );

  test('the store of another service is left unchanged, and the gateway continues to serve', async () => {
    const { path, clock, ask, sandbox, logged } = await startAhead();
    await otherStore(`${path}-other`, 'https://elsewhere.test', clock);
    copyFileSync(path, `${path}-mine`);
    copyFileSync(`${path}-other`, path);
    const before = readFileSync(path);
    await clock.pass(MINUTE);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(sandbox.exchanges).toHaveLength(4);
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(alarms(logged)[0]).toMatch(
      /^The token store was replaced by another one, with other tokens/,
    );
    copyFileSync(`${path}-mine`, path);
    await clock.pass(SECOND);
    expect(saved(logged)).toHaveLength(1);
  });
});

test('a store that was encrypted with another key is not reported as gone, and the gateway continues to serve', async () => {
  const { path } = places();
  const [old, young] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const store = watchStore((now) => openSqliteStore(path, { now, sealer: createSealer([old]) }));
  const kept = await startKeptOverSandbox({ store });
  await kept.clock.asleep();
  expect(codesOf(await kept.ask(PERSON))).toEqual([]);
  await openSqliteStore(path, { sealer: createSealer([young, old]) }).close();
  await kept.clock.pass(MINUTE);
  expect(codesOf(await kept.ask(PERSON))).toEqual([]);
  const said = alarms(kept.logged).join('\n');
  expect(said).toMatch(/cannot be read with the keys of this process.*TOKEN_STORE_KEY/);
  expect(said).not.toMatch(/gone/);
  kept.service.ahead += 2 * DAY;
  expect(loggedFor(kept.logged, await kept.ask(PERSON))).toMatch(
    /encrypted with a key that the gateway does not have/,
  );
  expect(kept.sandbox.exchanges).toHaveLength(1);
  await openSqliteStore(path, { sealer: createSealer([old, young]) }).close();
  await kept.clock.pass(MINUTE);
  expect(codesOf(await kept.ask(PERSON))).toEqual([]);
  expect(kept.sandbox.exchanges).toHaveLength(2);
});

test('a read of the store that began before a refresh is not mistaken for an older copy', async () => {
  const { clock, service, store, sandbox, ask, logged } = await startAhead();
  const { refreshToken } = (await store.read())!.pair;
  service.ahead += 2 * DAY;
  const exchange = sandbox.tokenAnswers.hold('after');
  const first = ask(personUnlikeOthers());
  await exchange.arrived;
  const { read } = store;
  const late = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  store.read = async () => {
    store.read = read;
    const stored = await read();
    reached.resolve();
    await late.promise;
    return stored;
  };
  // Unlike the first one, because equal queries share a request.
  const second = ask(personUnlikeOthers());
  await reached.promise;
  exchange.release();
  expect(codesOf(await first)).toEqual([]);
  late.resolve();
  expect(codesOf(await second)).toEqual([]);
  await clock.asleep();
  expect((await read())!.pair.refreshToken).not.toBe(refreshToken);
  expect(logged.filter(({ trouble }) => trouble === 'unsaved')).toEqual([]);
});

test('200 requests that meet one expiry read the store a few times, and are all answered', async () => {
  const { service, store, sandbox, ask } = await startAhead();
  const { read } = store;
  let reads = 0;
  store.read = () => {
    reads += 1;
    return read();
  };
  service.ahead += 2 * DAY;
  const before = sandbox.exchanges.length;
  const answers = await Promise.all(Array.from({ length: 200 }, () => ask(personUnlikeOthers())));
  expect(answers.flatMap(codesOf)).toEqual([]);
  expect(sandbox.exchanges).toHaveLength(before + 1);
  expect(reads).toBeLessThan(50);
});

/** At generation 5, with a copy of generation 2 beside it. */
async function startAhead() {
  const { path, backup } = places();
  const kept = await startKeptOverSandbox({
    store: watchStore((now) => openSqliteStore(path, { now })),
  });
  const expire = () => void (kept.service.ahead += 2 * DAY);
  await kept.clock.asleep();
  await kept.ask(PERSON);
  copyFileSync(path, backup);
  for (let generation = 3; generation <= 5; generation += 1) {
    expire();
    expect(codesOf(await kept.ask(PERSON))).toEqual([]);
    expect(await kept.store.read()).toMatchObject({ generation });
  }
  return { ...kept, path, backup, expire };
}

/** At generation 4, in the second set of the store, with a copy that has only the first set. */
async function startReplacedSet() {
  const { path, backup: other } = places();
  const kept = await startKeptOverSandbox({
    store: watchStore((now) => openSqliteStore(path, { now })),
  });
  const expire = () => void (kept.service.ahead += 2 * DAY);
  const { clock, store, sandbox } = kept;
  await clock.asleep();
  await kept.ask(PERSON);
  copyFileSync(path, other);
  expire();
  const pair = readTokenSet(await (await fetch(sandbox.makeNewSet())).json())!;
  await store.import({ baseUrl: sandbox.url, pair, after: await store.read(), replica: 'hand' });
  await clock.pass(MINUTE);
  expect(codesOf(await kept.ask(PERSON))).toEqual([]);
  return { ...kept, path, other, expire };
}

/** A store with a set that no service issued. */
async function otherStore(path: string, baseUrl: string, { now }: Kept['clock']) {
  const elsewhere = openSqliteStore(path, { now });
  const pair = pairOf('other');
  await elsewhere.import({ baseUrl, pair, replica: 'hand', after: null });
  await elsewhere.close();
  return pair;
}

function alarms(logged: Kept['logged']): string[] {
  return logged.filter(({ level }) => level === 60).map(({ msg }) => String(msg));
}

function places() {
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { path: join(folder, 'tokens.db'), backup: join(folder, 'backup') };
}

function saved(logged: Kept['logged']) {
  return logged.filter(({ msg }) => msg === 'the new token pair is saved now');
}

/** A database at generation 2, whose access token has expired, and the next pair, which another replica has. */
async function startOnOlderCopy({ isBehind = true } = {}) {
  const clock = new ManualClock();
  const database = timedDatabase(clock.now, clock.elapsed);
  const first = await startKeptOverSandbox({ clock, store: watchStore(() => database.open()) });
  await clock.asleep();
  await first.ask(PERSON);
  await first.stop();
  const { service, sandbox } = first;
  service.ahead += 2 * DAY;
  const older = database.open();
  const { set, generation, pair } = (await older.read())!;
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    refresh_token: pair.refreshToken,
  });
  const exchanged = () => fetch(`${sandbox.url}/oauth/token`, { method: 'POST', body });
  const next = isBehind ? readTokenSet(await (await exchanged()).json())! : pair;
  const exchange = { outcome: 'rotated', at: clock.now(), latencyMs: 1 } as const;
  const newer = { set, generation, attempt: 'theirs', pair: next, ...exchange };
  return { clock, database, older, newer, sandbox };
}

/** Asks once, as long as the store stays the same one. */
function answering(answer: () => Promise<void>): () => Promise<boolean> {
  let isAsked = false;
  return async () => {
    if (isAsked) return false;
    isAsked = true;
    void answer();
    return true;
  };
}
