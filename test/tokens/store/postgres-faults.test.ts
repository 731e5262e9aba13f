/** Faults of the network and of the database server, with a real PostgreSQL. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { connectPostgres } from '../../../src/tokens/store/postgres/connection.ts';
import { openPostgresStore } from '../../../src/tokens/store/postgres/postgres-store.ts';
import { createSealer, SealError } from '../../../src/tokens/store/seal.ts';
import { StoreUnavailableError } from '../../../src/tokens/store/token-store.ts';
import { blockWith } from '../../support/docs/documents.ts';
import { startPooler, type Pooler } from '../../support/postgres/pooler.ts';
import { startPostgres, type PostgresServer } from '../../support/postgres/server.ts';
import { alterClaim } from '../../support/postgres/stored-document.ts';
import { YEAR } from '../../support/random/manual-clock.ts';
import { pairOf } from '../../support/tokens/tokens.ts';
import { closing } from './sqlite-support.ts';
import { claiming, ending, importInto, saving } from './token-store-contract.ts';

let server: PostgresServer;
let pooler: Pooler;

beforeAll(async () => {
  server = await startPostgres();
  pooler = await startPooler(server.port, 'planted-password', 2);
});
afterAll(async () => {
  await pooler.close();
  await server.close();
});

const KEYS = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const;
const plain = createSealer([]);
const open = (url: string, sealer = plain, readOnly = false) =>
  closing(openPostgresStore(url, { sealer, clock: systemClock, readOnly }));
const throughPooler = (url: string) => url.replace(`:${server.port}/`, `:${pooler.port}/`);

test('ten replicas that start at once on an empty database make one store', async () => {
  const url = await server.emptyStore();
  const replicas = Array.from({ length: 10 }, (_, index) =>
    open(index % 2 === 0 ? url : throughPooler(url)),
  );
  const found = await Promise.all(replicas.map((replica) => replica.read()));
  expect(found).toEqual(Array(10).fill(null));
  const set = await importInto(replicas[0]!, 'link');
  const claims = await Promise.all(
    replicas.map((replica, index) => replica.claim(claiming(set, `replica ${index}`))),
  );
  expect(claims.filter(Boolean)).toHaveLength(1);
  const ids = await Promise.all(replicas.map(async (replica) => (await replica.read())!.storeId));
  expect(new Set(ids).size).toBe(1);
});

describe.each(['before', 'after'] as const)(
  'a connection that is cut %s the server commits',
  (when) => {
    test('a claim, a save or an ending whose connection is cut has its outcome when it is repeated', async () => {
      const url = await server.emptyStore();
      const [direct, cut] = [open(url), open(throughPooler(url))];
      const set = await importInto(direct, 'link');
      await cut.read();

      const [claimed] = await Promise.all([
        cut.claim(claiming(set, 'a')),
        pooler.cutAtCommit(when),
      ]);
      expect(claimed).toBeDefined();
      expect(await direct.read()).toMatchObject({ claim: { attempt: 'a', live: true } });
      await Promise.all([cut.endAttempt('a', ending('uncertain')), pooler.cutAtCommit(when)]);
      expect(await direct.read()).toMatchObject({ claim: { live: false }, unanswered: 1 });
      expect(await cut.claim({ ...claiming(set, 'b'), over: 'a' })).toBeDefined();
      const [isHead] = await Promise.all([cut.save(saving(set, 'b')), pooler.cutAtCommit(when)]);
      expect(isHead).toBe(true);
      expect(await direct.read()).toMatchObject({ generation: 2, surplus: 0, claim: null });
      expect(await direct.history(9)).toHaveLength(3);
    });
  },
);

test('a claim excludes other replicas until its time is over, by the clock of the server', async () => {
  const url = await server.emptyStore();
  const [one, other] = [open(url), open(url)];
  const set = await importInto(one, 'link');
  await one.claim({ ...claiming(set, 'a'), lifeMs: 700 });
  expect(await other.claim(claiming(set, 'b'))).toBeUndefined();
  await expect.poll(() => other.claim(claiming(set, 'b')), { timeout: 20_000 }).toBeDefined();
  expect(await one.save(saving(set, 'a'))).toBe(true);
  expect(await other.save(saving(set, 'b'))).toBe(false);
  expect(await other.read()).toMatchObject({ generation: 2, pair: pairOf('a'), surplus: 1 });
});

test('a claim dated a year ahead ends after its own length', async () => {
  const url = await server.emptyStore();
  const [one, other] = [open(url), open(url)];
  const set = await importInto(one, 'link');
  await one.claim({ ...claiming(set, 'a'), lifeMs: 700 });
  await alterClaim(server, new URL(url).username, (claim) => ({
    ...claim,
    at: claim.at + YEAR,
    until: claim.until + YEAR,
  }));
  expect(await other.claim(claiming(set, 'b'))).toBeUndefined();
  await expect.poll(() => other.claim(claiming(set, 'b')), { timeout: 20_000 }).toBeDefined();
});

test('a claim is refused if the store became another one while the others were asked', async () => {
  const url = await server.emptyStore();
  const set = await importInto(open(url), 'link');
  let meanwhile: (() => Promise<void>) | undefined;
  const connect: typeof connectPostgres = (address, clock) => {
    const database = connectPostgres(address, clock);
    return {
      ...database,
      transaction: (kind, work) =>
        database.transaction(kind, (run) =>
          work(async (name, values) => {
            if (name === 'announce') await meanwhile?.();
            return run(name, values);
          }),
        ),
    };
  };
  const store = closing(openPostgresStore(url, { sealer: plain, clock: systemClock, connect }));
  await store.read();
  meanwhile = async () => {
    meanwhile = undefined;
    // As after a failover, the row with the layout is another one.
    const owner = new URL(url).username;
    await server.query(`UPDATE ${owner}.recruiting_token_store SET layout = layout`);
    await store.read();
  };
  expect(await store.askOthers!()).toBe(true);
  expect(await store.claim(claiming(set, 'a'))).toBeUndefined();
  expect(await store.askOthers!()).toBe(true);
  expect(await store.claim(claiming(set, 'a'))).toBeDefined();
});

test('changes are announced to other replicas on a session, and not through a pooler', async () => {
  const url = await server.emptyStore();
  const [writer, listener, pooled] = [open(url), open(url), open(throughPooler(url))];
  let [heard, heardThroughPooler] = [0, 0];
  listener.watch!(() => void (heard += 1));
  pooled.watch!(() => void (heardThroughPooler += 1));
  await expect.poll(() => [heard, heardThroughPooler], { timeout: 20_000 }).toEqual([1, 1]);
  const listening = () => server.query("SELECT 1 FROM pg_stat_activity WHERE query ~ '^LISTEN'");
  await expect.poll(listening, { timeout: 20_000 }).toHaveLength(1);
  await importInto(writer, 'link');
  await expect.poll(() => heard, { timeout: 20_000 }).toBeGreaterThan(1);
  expect(heardThroughPooler).toBe(1);
});

test('a role without the right to create tables works once they exist, and gets a message that names the right before', async () => {
  const url = await server.emptyStore();
  const owner = new URL(url).username;
  const user = `${owner}_user`;
  const [usage, tables] = blockWith('docs/tokens.md', 'GRANT USAGE')
    .replaceAll('recruiting', owner)
    .replaceAll('gateway', user)
    .split('\n');
  await server.query(
    `CREATE ROLE ${user} LOGIN PASSWORD 'planted-password'; ALTER ROLE ${user} SET search_path = ${owner};
     ${usage}`,
  );
  const store = open(url.replace(`//${owner}:`, `//${user}:`));
  await expect(store.read()).rejects.toThrow(/lacks a right.*docs\/tokens\.md/);
  await open(url).read();
  await server.query(tables!);
  const set = await importInto(store, 'link');
  expect(await store.claim(claiming(set, 'a'))).toBeDefined();
  expect(await store.save(saving(set, 'a'))).toBe(true);
});

test('a store that is opened for reading creates no tables', async () => {
  const url = await server.emptyStore();
  const reader = open(url, plain, true);
  expect(await reader.read()).toBeNull();
  expect(await reader.history(9)).toEqual([]);
  const tables = `SELECT 1 FROM pg_tables WHERE schemaname = '${new URL(url).username}'`;
  expect(await server.query(tables)).toEqual([]);
});

test('tokens are encrypted with the newest key, and cannot be read without it', async () => {
  const url = await server.emptyStore();
  await importInto(open(url), 'link');
  const everything = async () =>
    JSON.stringify(
      await server.query(`SELECT document FROM ${new URL(url).username}.recruiting_token_document`),
    );
  expect(await everything()).toContain('refresh-link');
  await open(url, createSealer([KEYS[0]])).read();
  expect(await everything()).not.toContain('refresh-link');
  await expect(open(url).read()).rejects.toThrow(SealError);
  await expect(open(url, createSealer([KEYS[1]])).read()).rejects.toThrow(SealError);
  const sealed = await everything();
  const both = createSealer([KEYS[1], KEYS[0]]);
  expect(await open(url, both).read()).toMatchObject({ pair: pairOf('link') });
  expect(await everything()).not.toBe(sealed);
});

describe('a mistake in the address', () => {
  test.each([
    ['a wrong password', (url: URL) => void (url.password = 'wrong'), /user or the password/],
    [
      'an unknown database',
      (url: URL) => void (url.pathname = '/nowhere'),
      /no database of the name/,
    ],
    [
      'TLS that the server does not have',
      (url: URL) => url.searchParams.set('sslmode', 'require'),
      /does not offer TLS/,
    ],
    [
      'a certificate file that is not there',
      (url: URL) => url.searchParams.set('sslrootcert', '/nowhere.pem'),
      /names \(sslrootcert/,
    ],
  ])('%s is explained, without the password, and is no outage', async (_, change, said) => {
    const url = new URL(await server.emptyStore());
    change(url);
    const error = await open(url.href)
      .read()
      .catch((thrown: unknown) => thrown);
    expect(error).not.toBeInstanceOf(StoreUnavailableError);
    expect(String(error)).toMatch(said);
    expect(String(error)).not.toMatch(/planted-password|wrong/);
  });

  test.each([
    ['an unknown host', (url: URL) => void (url.hostname = 'nowhere.invalid'), /host/],
    ['a port where nothing listens', (url: URL) => void (url.port = '1'), /nothing listens/],
  ])('%s may be an outage', async (_, change, said) => {
    const url = new URL(await server.emptyStore());
    change(url);
    const error = await open(url.href)
      .read()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(String(error)).toMatch(said);
  });
});

test('a process that stops inside a transaction delays the others by a few seconds only', async () => {
  const url = await server.emptyStore();
  const store = open(url);
  const set = await importInto(store, 'link');
  const stopped = server.query(
    `BEGIN; SET LOCAL idle_in_transaction_session_timeout = 1000;
     SELECT 1 FROM ${new URL(url).username}.recruiting_token_store FOR UPDATE; SELECT pg_sleep(1); COMMIT`,
  );
  await delay(200);
  expect(await store.claim(claiming(set, 'a'))).toBeDefined();
  await stopped;
});

describe('a store that may be an older copy', () => {
  test.each([
    ['on a session', (url: string) => url],
    ['through a transaction pooler', throughPooler],
  ])(
    'a process %s asks the others once, and again after the server was restarted; until then it gets no claim',
    async (_, otherUrl) => {
      const { one, other, set } = await two(otherUrl);
      let heard = 0;
      one.watch!(() => void (heard += 1));
      const listening = () =>
        server.query("SELECT 1 FROM pg_stat_activity WHERE query ~ '^LISTEN'");
      await expect.poll(listening, { timeout: 20_000 }).not.toHaveLength(0);
      const before = heard;
      expect(await other.askOthers!()).toBe(true);
      await expect.poll(() => heard, { timeout: 20_000 }).toBeGreaterThan(before);
      expect(await other.askOthers!()).toBe(false);
      expect(await other.claim(claiming(set, 'a'))).toBeDefined();
      await other.endAttempt('a', ending('unsent'));

      await server.stop();
      await server.start();
      expect(await other.claim(claiming(set, 'b'))).toBeUndefined();
      expect(await other.askOthers!()).toBe(true);
      expect(await other.claim(claiming(set, 'b'))).toBeDefined();
    },
  );

  test('a copy that is put in its place while the server runs is noticed as well', async () => {
    const { url, other, set } = await two();
    const schema = new URL(url).username;
    expect(await other.askOthers!()).toBe(true);
    await server.query(
      `BEGIN; CREATE TEMP TABLE copy AS TABLE ${schema}.recruiting_token_store;
       TRUNCATE ${schema}.recruiting_token_store; INSERT INTO ${schema}.recruiting_token_store TABLE copy;
       DROP TABLE copy; COMMIT`,
    );
    expect(await other.claim(claiming(set, 'a'))).toBeUndefined();
    expect(await other.askOthers!()).toBe(true);
    expect(await other.claim(claiming(set, 'a'))).toBeDefined();
  });

  test('a copy of its database that is given its name is noticed as well', async () => {
    const { username, href } = new URL(await server.emptyStore());
    await server.query(`CREATE DATABASE tokens OWNER ${username}`);
    const store = open(href.replace(/postgres$/, 'tokens'));
    const set = await importInto(store, 'link');
    expect(await store.askOthers!()).toBe(true);
    await server.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'tokens'",
    );
    await server.query('CREATE DATABASE copy TEMPLATE tokens');
    await server.query('ALTER DATABASE tokens RENAME TO before');
    await server.query('ALTER DATABASE copy RENAME TO tokens');

    expect(await store.claim(claiming(set, 'a'))).toBeUndefined();
    expect(await store.askOthers!()).toBe(true);
    expect(await store.claim(claiming(set, 'a'))).toBeDefined();
  });

  test('transactions, maintenance and other sessions do not make it another one', async () => {
    const { url, one, other, set } = await two();
    const schema = new URL(url).username;
    expect(await other.askOthers!()).toBe(true);
    await one.save(saving(set, 'a'));
    for (const statement of ['VACUUM (FULL, FREEZE)', 'ANALYZE', 'REINDEX TABLE']) {
      await server.query(`${statement} ${schema}.recruiting_token_store`);
    }
    await server.query('SELECT pg_reload_conf()');
    await other.read();
    expect(await other.askOthers!()).toBe(false);
    expect(await other.claim(claiming(set, 'b', 2))).toBeDefined();
  });
});

test('a server that was stopped and started is used again, and this is announced', async () => {
  const url = await server.emptyStore();
  const store = open(url);
  const set = await importInto(store, 'link');
  let heard = 0;
  store.watch!(() => void (heard += 1));
  await expect.poll(() => heard, { timeout: 20_000 }).toBe(1);
  await server.stop();
  await expect(store.read()).rejects.toThrow(StoreUnavailableError);
  await server.start();
  expect(await store.read()).toMatchObject({ set });
  await expect.poll(() => heard, { timeout: 20_000 }).toBeGreaterThan(1);
  expect(await store.claim(claiming(set, 'a'))).toBeDefined();
});

async function two(otherUrl = (url: string) => url) {
  const url = await server.emptyStore();
  const [one, other] = [open(url), open(otherUrl(url))];
  const set = await importInto(one, 'link');
  await other.read();
  return { url, one, other, set };
}
