/** Replicas that share their tokens in a real PostgreSQL, under constant load. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { startBalancer } from '../support/processes/balancer.ts';
import { startSteadyLoad } from '../support/processes/steady-load.ts';
import {
  eventually,
  startTokenWorld,
  type TokenGateway,
  type TokenWorld,
} from '../support/tokens/world.ts';

const REPLICAS = 10;
const EXPIRIES = 100;
/** Longer than any test: a second signal ends the delay. */
const DELAY = { SHUTDOWN_DELAY_MS: '600000' };

let postgres: PostgresServer;
let world: TokenWorld;
let replicas: TokenGateway[];
/** Exchanges before the test. */
let before: number;

beforeAll(async () => {
  postgres = await startPostgres();
  world = await startTokenWorld({ store: await postgres.emptyStore() });
  await world.tokens(['import', world.sandbox.tokenLink]);
  replicas = await Promise.all(Array.from({ length: REPLICAS }, () => world.serve(DELAY)));
  await Promise.all(replicas.map((replica) => replica.serves()));
}, 120_000);
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await postgres.close();
});

beforeEach(() => void (before = world.sandbox.exchanges.length));
afterEach(() => isHealthy());

const isHealthy = async () => expect(await world.tokens(['status'])).toMatchObject({ code: 0 });

/** How often each replica has logged this. */
const counted = (pattern: RegExp) =>
  replicas.map(({ said }) => said.match(new RegExp(pattern, 'g'))?.length ?? 0);
const once = Array(REPLICAS).fill(1);
const exchanges = () => world.outcomes(before);

test(`${REPLICAS} replicas under load make one exchange for each of ${EXPIRIES} expiries, and no request fails, also while PostgreSQL is down`, async () => {
  const loads = replicas.map(({ url }) => startSteadyLoad(new URL(url).origin, 1));
  const answered = (each: number) => Promise.all(loads.map((load) => load.answered(each)));
  for (let expiry = 0; expiry < EXPIRIES; expiry += 1) {
    await world.expire();
    // All replicas meet it: no token except the next one is accepted.
    await answered(1);
    if (expiry !== EXPIRIES / 2) continue;
    await postgres.stop();
    await eventually(() => expect(counted(/could not be refreshed or read/)).toEqual(once));
    await answered(5);
    await postgres.start();
    await eventually(() => expect(counted(/The tokens are kept again/)).toEqual(once));
  }
  expect((await Promise.all(loads.map((load) => load.end()))).flat()).toEqual([]);
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
    // npm forwards signals that its process has already received: that must not count as a second one.
    leaving.signal('SIGTERM');
    const [next] = await Promise.all([world.serve(DELAY), leaving.printed(/\/ready fails/)]);
    expect((await fetch(new URL('/ready', leaving.url))).status).toBe(503);
    // A token that was never accepted is not believed to have expired.
    await Promise.all([...replicas, next].map((replica) => replica.serves()));
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
