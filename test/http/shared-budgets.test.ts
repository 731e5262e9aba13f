/** Replicas that count the pages of their callers in one PostgreSQL. */
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { connectPostgres, type Database } from '../../src/tokens/store/postgres/connection.ts';
import { openPostgresStore } from '../../src/tokens/store/postgres/postgres-store.ts';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { startPooler, type Pooler } from '../support/postgres/pooler.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';

let server: PostgresServer;
let pooler: Pooler;

beforeAll(async () => {
  server = await startPostgres();
  pooler = await startPooler(server.port, 'planted-password');
});
afterAll(async () => {
  await pooler.close();
  await server.close();
});

const PORTAL = 'the portal';
const OTHER = 'another caller';

test('a caller has PAGES_PER_MINUTE in all replicas together, also through a transaction pooler, and learns when there are more', async () => {
  const url = await server.emptyStore();
  const began = performance.now();
  const replicas = [
    await startReplica(url, 20),
    await startReplica(url.replace(`:${server.port}/`, `:${pooler.port}/`), 20),
  ];
  const served = await askInTurn(replicas);
  expect(served).toBeGreaterThanOrEqual(20);
  // Each may be a page late, and the server's clock goes on.
  expect(served).toBeLessThanOrEqual(20 + 2 + refilled(20, began));
  for (const replica of replicas) {
    expect((await replica.ask(PORTAL)).errors).toMatchObject([
      {
        message: expect.stringContaining('20 pages a minute'),
        extensions: { code: 'RATE_LIMITED', retryAfter: expect.toSatisfy((s) => s >= 1 && s <= 9) },
      },
    ]);
    expect((await replica.ask(OTHER)).errors).toBeUndefined();
  }
});

test('a thousand requests need few statements', async () => {
  const replica = await startReplica(await server.emptyStore(), 6_000);
  for (let batch = 0; batch < 50; batch += 1) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => replica.ask(PORTAL)));
    expect(answers.flatMap(({ errors }) => errors ?? [])).toEqual([]);
    replica.clock.jump(40);
  }
  await replica.reported();
  expect(replica.count('takePages')).toBeGreaterThan(1);
  expect(replica.count('takePages')).toBeLessThan(10);
  // Those that look for the table, and make it.
  expect(replica.count()).toBeLessThan(10 + 3);
});

test('while PostgreSQL hangs or is down nobody waits, and each replica gives a caller its own minute, warns once, and shares again afterwards', async () => {
  const url = await server.emptyStore();
  const replicas = [await startReplica(url, 20), await startReplica(url, 20)];
  for (const { ask, reported } of replicas) {
    expect((await ask(PORTAL)).errors).toBeUndefined();
    await reported();
  }
  const hanging = server
    .query(`BEGIN; LOCK TABLE ${tableOf(url)}; SELECT pg_sleep(60)`)
    .catch(() => 'ended');
  const isLocked = `SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
  await vi.waitFor(async () => expect(await server.query(isLocked)).toHaveLength(1), {
    timeout: 60_000,
  });
  for (const { ask } of replicas) expect((await ask(OTHER)).errors).toBeUndefined();
  await server.stop();
  expect(await hanging).toBe('ended');
  // The second one knew of the page that the first one had reported.
  expect(await askInTurn(replicas)).toBeGreaterThanOrEqual(37);
  for (const { clock } of replicas) clock.jump(MINUTE);
  expect(await askInTurn(replicas)).toBe(40);
  for (const { logged } of replicas) {
    expect(logged.filter(({ level }) => Number(level) >= 40)).toEqual([
      expect.objectContaining({ level: 40, msg: expect.stringContaining('PAGES_PER_MINUTE') }),
    ]);
  }
  await server.start();
  const began = performance.now();
  const shares = async () => {
    for (const { clock, ask } of replicas) {
      clock.jump(MINUTE);
      await ask(PORTAL);
    }
    await Promise.all(replicas.map(({ reported }) => reported()));
    for (const { logged } of replicas) expect(logged.at(-1)!['msg']).toMatch(/PostgreSQL again/);
  };
  await vi.waitFor(shares, { timeout: 20_000 });
  for (const { clock } of replicas) clock.jump(MINUTE);
  expect(await askInTurn(replicas)).toBeLessThanOrEqual(20 + 2 + refilled(20, began));
});

test('a caller waits minutes, not years, after the clock of the database server was a year ahead', async () => {
  const url = await server.emptyStore();
  const replica = await startReplica(url, 20);
  await replica.ask(PORTAL);
  await replica.reported();
  await server.query(`UPDATE ${tableOf(url)} SET full_at = full_at + 31536000000`);
  await replica.ask(PORTAL);
  await replica.reported();
  const [error] = (await replica.ask(PORTAL)).errors!;
  expect(error).toMatchObject({ extensions: { code: 'RATE_LIMITED' } });
  expect(Number(error!.extensions['retryAfter'])).toBeLessThan(900);
});

test('a replica that ends reports what its callers have used', async () => {
  const url = await server.emptyStore();
  const replica = await startReplica(url, 200);
  await replica.ask(PORTAL);
  await replica.reported();
  const fullAt = async () => Number((await rowsOf(url))[0]!['full_at']);
  const before = await fullAt();
  for (let request = 0; request < 8; request += 1) await replica.ask(PORTAL);
  await replica.reported();
  expect(await fullAt()).toBe(before);
  await replica.gateway.close();
  // A page comes back in 300 ms.
  expect(await fullAt()).toBeGreaterThan(before + 2_399);
});

test('the rows of callers hold no names, and are removed once their minute is full', async () => {
  const url = await server.emptyStore();
  const replica = await startReplica(url, 20);
  await replica.ask(PORTAL);
  await replica.reported();
  const [row] = await rowsOf(url);
  expect(String(row!['caller'])).toMatch(/^[\w-]{43}$/);
  await server.query(`UPDATE ${tableOf(url)} SET full_at = full_at - 120000`);
  replica.clock.jump(MINUTE);
  await replica.ask(OTHER);
  await replica.reported();
  const rows = await rowsOf(url);
  expect(rows).toHaveLength(1);
  expect(rows[0]!['caller']).not.toBe(row!['caller']);
});

test('a role without the right to create the table serves, warns once, and shares when an owner has made it', async () => {
  const url = await server.emptyStore();
  const owner = new URL(url).username;
  const role = `${owner}_role`;
  await server.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'planted-password'; ALTER ROLE ${role} SET search_path = ${owner};
     GRANT USAGE ON SCHEMA ${owner} TO ${role};
     ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${role}`,
  );
  const replica = await startReplica(url.replace(`//${owner}:`, `//${role}:`), 20);
  for (let request = 0; request < 5; request += 1) {
    expect((await replica.ask(PORTAL)).errors).toBeUndefined();
    replica.clock.jump(5 * SECOND);
    await replica.reported();
  }
  expect(replica.logged.map(({ msg, err }) => [msg, err])).toEqual([
    [
      expect.stringContaining('cannot be counted'),
      expect.objectContaining({ message: expect.stringContaining('lacks a right') }),
    ],
  ]);
  // The table is made with the others.
  await openStore(url).read();
  replica.clock.jump(5 * SECOND);
  await replica.ask(PORTAL);
  await replica.reported();
  expect(replica.logged).toHaveLength(2);
  expect(await rowsOf(url)).toHaveLength(1);
});

/** A gateway over a service of its own, whose callers have a minute with all replicas on this store. */
async function startReplica(url: string, pagesPerMinute: number) {
  const clock = new ManualClock();
  const { log, logged } = recordingLog();
  const { database, statements, idle } = observed(url);
  const store = openStore(url, () => database);
  const world = await startGatewayOverSandbox(
    { persons: 100 },
    {
      clock,
      ledger: store.ledger({ perMinute: pagesPerMinute, clock, log }),
      config: {
        pagesPerMinute,
        auth: {
          apiKeys: [entryFor(PORTAL, 'portal', 'read'), entryFor(OTHER, 'other', 'read')],
          jwt: undefined,
        },
      },
    },
  );
  onTestFinished(() => world[Symbol.asyncDispose]());
  return {
    clock,
    gateway: world.gateway,
    /** What is logged about the ledger. */
    logged,
    ask: (key: string) =>
      world.ask('{ persons(first: 1) { items { id } } }', {}, { headers: { 'x-api-key': key } }),
    /** Waits until nothing is under way to the server. */
    reported: idle,
    /** How many statements with this name were sent, or all but those that begin and end transactions. */
    count: (name?: string) =>
      statements.filter((statement) => name === undefined || statement === name).length,
  };
}

type Replica = Awaited<ReturnType<typeof startReplica>>;

/** Sends requests to one replica after the other until all refuse, and returns how many were answered. */
async function askInTurn(replicas: readonly Replica[]): Promise<number> {
  let served = 0;
  for (let refused = 0, turn = 0; refused < replicas.length; turn += 1) {
    const replica = replicas[turn % replicas.length]!;
    const { errors } = await replica.ask(PORTAL);
    await replica.reported();
    if (errors) refused += 1;
    else [served, refused] = [served + 1, 0];
  }
  return served;
}

/** The pages that come back after this time, rounded up. */
function refilled(perMinute: number, since: number): number {
  return Math.ceil(((performance.now() - since) * perMinute) / MINUTE);
}

function openStore(url: string, connect?: () => Database) {
  const sealer = createSealer([]);
  const store = openPostgresStore(url, { sealer, clock: systemClock, ...(connect && { connect }) });
  onTestFinished(() => store.close());
  return store;
}

/** Connections on which statements are counted, and whose transactions can be waited for. */
function observed(url: string) {
  const real = connectPostgres(url, systemClock);
  const statements: string[] = [];
  const open = new Set<Promise<unknown>>();
  const database: Database = {
    ...real,
    transaction: (kind, work) => {
      const transaction = real.transaction(kind, (run) =>
        work((name, values) => {
          statements.push(name);
          return run(name, values);
        }),
      );
      open.add(transaction);
      void transaction.catch(() => {}).finally(() => open.delete(transaction));
      return transaction;
    },
  };
  const idle = async () => {
    do {
      await Promise.allSettled(open);
      await setImmediate();
    } while (open.size > 0);
  };
  return { database, statements, idle };
}

function tableOf(url: string): string {
  return `${new URL(url).username}.recruiting_page_budget`;
}

function rowsOf(url: string) {
  return server.query(`SELECT caller, full_at FROM ${tableOf(url)}`);
}
