/** Replicas that share their tokens in a real PostgreSQL, under constant load. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
import { startBalancer } from '../support/processes/balancer.ts';
import { startSteadyLoad, type SteadyLoad } from '../support/processes/steady-load.ts';
import {
  allServe,
  startReplicaWorld,
  type Replica,
  type ReplicaWorld,
} from '../support/postgres/replicas.ts';
import { eventually, older } from '../support/tokens/fault-world.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';

const REPLICAS = 10;
const EXPIRIES = 100;

let world: ReplicaWorld;
let replicas: Replica[];
/** Exchanges before the test. */
let before: number;
/** What each replica had printed before the test. */
let printed: number[];

beforeAll(async () => {
  world = await startReplicaWorld();
  // Includes the one exchange of an import.
  await world.tokens(['import', world.sandbox.tokenLink]);
  replicas = await Promise.all(Array.from({ length: REPLICAS }, () => world.serve()));
  await allServe(replicas);
}, 120_000);
afterAll(() => world[Symbol.asyncDispose]());

beforeEach(() => {
  before = world.sandbox.exchanges.length;
  printed = replicas.map(({ said }) => said.length);
});
afterEach(() => isHealthy());

const isHealthy = async () => {
  const { stdout, code } = await world.tokens(['status']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('healthy') });
};

/** How often each replica has logged this during the test. */
const counted = (pattern: RegExp) =>
  replicas.map(
    ({ said }, index) => said.slice(printed[index]).match(new RegExp(pattern, 'g'))?.length ?? 0,
  );
/** The name of the store's schema. */
const schema = () => new URL(world.env.TOKEN_STORE).username;
const once = () => replicas.map(() => 1);
const generation = async () => {
  const { stdout } = await world.tokens(['status', '--json']);
  return (JSON.parse(stdout) as { generation: number }).generation;
};
const exchanges = () => world.outcomes(before);
const loadOnAll = () => replicas.map(({ url }) => startSteadyLoad(new URL(url).origin, 1));
const answeredByAll = (loads: readonly SteadyLoad[], each = 1) =>
  Promise.all(loads.map((load) => load.answered(each)));
const problemsOf = async (loads: readonly SteadyLoad[]) =>
  (await Promise.all(loads.map((load) => load.end()))).flat();

test(`${REPLICAS} replicas under load make one exchange for each of ${EXPIRIES} expiries, and no request fails`, async () => {
  const loads = loadOnAll();
  for (let expiry = 0; expiry < EXPIRIES; expiry += 1) {
    await world.expire();
    // All replicas meet it: no token except the next one is accepted.
    await answeredByAll(loads);
  }
  expect(await problemsOf(loads)).toEqual([]);
  expect(exchanges()).toEqual(Array(EXPIRIES).fill('answered'));
}, 600_000);

test('three replicas behind a balancer are restarted one after the other under load while tokens expire, and no request fails', async () => {
  const backends = replicas.slice(0, 3).map((replica) => ({ replica, url: replica.url }));
  await using balancer = await startBalancer(backends);
  const load = startSteadyLoad(balancer.url);
  await load.answered(3);
  expect(balancer.connections.every((count) => count > 0)).toBe(true);
  for (const [index, backend] of backends.entries()) {
    const leaving = backend.replica;
    leaving.signal('SIGTERM');
    const [next] = await Promise.all([world.serve(), leaving.printed(/\/ready fails/)]);
    // A token that was never accepted is not believed to have expired.
    await allServe([...replicas, next]);
    await world.expire();
    // No client has a connection to the replica that stops.
    await load.answered(3);
    const again = setInterval(() => leaving.signal('SIGTERM'), 200);
    await leaving.printed(/stopping: requests in flight/);
    clearInterval(again);
    expect(await leaving.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(leaving.stdout).not.toContain('cut off');
    replicas[index] = next;
    Object.assign(backend, { replica: next, url: next.url });
  }
  expect(await load.end()).toEqual([]);
  expect(exchanges()).toEqual(['answered', 'answered', 'answered']);
});

test('while PostgreSQL is down all replicas serve, report it once, and refresh again after its return', async () => {
  const loads = loadOnAll();
  await world.postgres.stop();
  await eventually(() => expect(counted(/could not be refreshed or read/)).toEqual(once()));
  await answeredByAll(loads, 5);
  await world.postgres.start();
  await eventually(() => expect(counted(/The tokens are kept again/)).toEqual(once()));
  await world.expire();
  await answeredByAll(loads);
  expect(await problemsOf(loads)).toEqual([]);
  expect(counted(/\] (ERROR|FATAL): /)).toEqual(once());
  expect(exchanges()).toEqual(['answered']);
}, 120_000);

test('a pair whose save is cut by kill -9 of PostgreSQL is in an emergency file, serves, and is saved when the server is back', async () => {
  const answer = world.sandbox.tokenAnswers.hold('after');
  await world.expire();
  const answered = askAt(replicas[0]!.url, personUnlikeOthers());
  await answer.arrived;
  // The others are not affected yet: their token works.
  world.unexpire();
  const loads = loadOnAll();
  // The save waits for this row, and ends with the server.
  const locked = world.postgres
    .query(`BEGIN; SELECT 1 FROM ${schema()}.recruiting_tokens FOR UPDATE; SELECT pg_sleep(60)`)
    .catch(() => 'killed');
  const waitsOn = (type: 'Timeout' | 'Lock') =>
    world.postgres.query(`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = '${type}' AND
      usename IN ('postgres', '${schema()}')`);
  await eventually(async () => expect(await waitsOn('Timeout')).toHaveLength(1));
  answer.release();
  await eventually(async () => expect(await waitsOn('Lock')).toHaveLength(1));
  world.postgres.kill();
  expect(await locked).toBe('killed');
  expect((await answered).errors).toBeUndefined();
  expect(counted(/could not be saved/)[0]).toBe(1);
  expect(world.unsaved()).toHaveLength(1);
  await answeredByAll(loads, 3);
  await world.postgres.start();
  await eventually(() => expect(world.unsaved()).toEqual([]));
  // The day in which the pair was made, and that was taken back, begins again: now the others have to use the pair.
  await world.expire();
  await answeredByAll(loads);
  expect(exchanges()).toEqual(['answered']);
  await world.expire();
  await answeredByAll(loads);
  expect(await problemsOf(loads)).toEqual([]);
  expect(exchanges()).toEqual(['answered', 'answered']);
});

test('after a failover that lost the last commit the replicas save their pair again, and report what happened', async () => {
  const loads = loadOnAll();
  await world.postgres.stop();
  const putBack = world.postgres.keepCopy();
  await world.postgres.start();
  await world.expire();
  await answeredByAll(loads);
  expect(exchanges()).toEqual(['answered']);
  const newest = await generation();
  await world.postgres.stop();
  putBack();
  await world.postgres.start();
  await eventually(async () => expect(await generation()).toBe(newest));
  expect(Math.max(...counted(/the token store lacked the newest pair, which was put back/))).toBe(
    1,
  );
  await world.expire();
  await answeredByAll(loads);
  expect(await problemsOf(loads)).toEqual([]);
  expect(exchanges()).toEqual(['answered', 'answered']);
});

test('tokens export moves a SQLite store to PostgreSQL under load without a failed request, and its gateway refuses to refresh from then on', async () => {
  const { postgres, folder } = world;
  const sqlite = { TOKEN_STORE: `sqlite:${folder.file('tokens.db')}` };
  const shared = { TOKEN_STORE: await postgres.emptyStore() };
  // `expire` reaches only the store that is left now, and a token that is seconds old is not renewed at once.
  await world.alter(older(60_000));
  // A service has one set at a time, so this one is of another host.
  const moved = await world.tokens(['export', sqlite.TOKEN_STORE]);
  expect(moved).toMatchObject({ code: 0, stderr: '' });
  const [single, next] = await Promise.all([world.serve(sqlite), world.serve(shared)]);
  await eventually(async () =>
    expect((await fetch(new URL('/ready', single.url))).status).toBe(200),
  );
  await using balancer = await startBalancer([single, next]);
  expect((await fetch(new URL('/ready', next.url))).status).toBe(503);
  const load = startSteadyLoad(balancer.url);
  await load.answered(3);

  const exported = await world.tokens(['export', shared.TOKEN_STORE], sqlite);
  expect(exported).toMatchObject({ code: 0, stderr: '' });
  await eventually(async () => expect((await fetch(new URL('/ready', next.url))).status).toBe(200));
  await load.answered(3);
  single.signal('SIGTERM');
  await single.printed(/\/ready fails/);
  await load.answered(3);
  await world.expire();
  await load.answered(3);
  expect(exchanges()).toEqual(['answered']);

  const answer = await askAt(single.url, personUnlikeOthers());
  expect(answer.errors).toMatchObject([{ extensions: { code: 'TOKENS_MISSING' } }]);
  await expectPrintedFor(single, answer, 'moved to');
  expect((await world.tokens(['refresh'], sqlite)).stderr).toMatch(
    /moved to another store \(postgres:/,
  );
  expect(exchanges()).toEqual(['answered']);
  expect(await load.end()).toEqual([]);
  expect((await world.tokens(['export', world.env.TOKEN_STORE], shared)).code).toBe(0);
});
