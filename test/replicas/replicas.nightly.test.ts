/** Replicas that share their tokens in a real PostgreSQL, under constant load. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import {
  eventually,
  startTokenWorld,
  type TokenGateway,
  type TokenWorld,
} from '../support/tokens/world.ts';

const REPLICAS = 10;
const EXPIRIES = 100;
/** Long enough for what happens to the others meanwhile. */
const DELAY = { SHUTDOWN_DELAY_MS: '15000' };

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

/** Short enough that a gateway always has requests, and long enough to leave it time for other work, ms. */
const PAUSE = 25;

/** A client that sends requests with hardly a pause to replicas that it picks, until it is ended or one fails. */
function startClient(pick: () => TokenGateway | Promise<TokenGateway>) {
  const counts = { sent: 0, answered: 0 };
  const stop = new AbortController();
  const send = async () => {
    while (!stop.signal.aborted) {
      const replica = await pick();
      counts.sent += 1;
      await replica.serves();
      counts.answered += 1;
      await delay(PAUSE);
    }
  };
  const ended = send();
  return {
    /** Resolves when it has received this many further answers, all to requests sent after this call. */
    answered: (more: number) => {
      const enough = counts.sent + more;
      return Promise.race([
        ended,
        eventually(() => expect(counts.answered).toBeGreaterThanOrEqual(enough)),
      ]);
    },
    end: () => {
      stop.abort();
      return ended;
    },
  };
}

/** Picks by turns, as a balancer does, from the replicas whose `/ready` says yes. */
function readyOf(backends: readonly TokenGateway[]) {
  let turn = 0;
  return async (): Promise<TokenGateway> => {
    for (;;) {
      const replica = backends[(turn += 1) % backends.length]!;
      const says = await fetch(new URL('/ready', replica.url)).catch(() => undefined);
      if (says?.ok) return replica;
    }
  };
}

test(`${REPLICAS} replicas under load make one exchange for each of ${EXPIRIES} expiries, and no request fails, also while PostgreSQL is down`, async () => {
  const clients = replicas.map((replica) => startClient(() => replica));
  const answered = (each: number) => Promise.all(clients.map((client) => client.answered(each)));
  for (let expiry = 0; expiry < EXPIRIES; expiry += 1) {
    await world.expire();
    // All replicas meet it: no token except the next one is accepted.
    await answered(1);
    if (expiry !== EXPIRIES / 2) continue;
    await postgres.stop();
    await eventually(() => expect(counted(/could not be refreshed or read/)).toEqual(once));
    await answered(5);
    await postgres.start();
  }
  await Promise.all(clients.map((client) => client.end()));
  expect(exchanges()).toEqual(Array(EXPIRIES).fill('answered'));
}, 600_000);

test('three replicas, of which clients use those that are ready, are restarted one after the other under load while tokens expire, and no request fails', async () => {
  const backends = replicas.slice(0, 3);
  const clients = Array.from({ length: 8 }, () => startClient(readyOf(backends)));
  const answered = (each: number) => Promise.all(clients.map((client) => client.answered(each)));
  await answered(3);
  for (const [index, leaving] of backends.entries()) {
    leaving.signal('SIGTERM');
    // npm forwards signals that its process has already received.
    leaving.signal('SIGTERM');
    const [next] = await Promise.all([world.serve(DELAY), leaving.printed(/\/ready fails/)]);
    expect((await fetch(new URL('/ready', leaving.url))).status).toBe(503);
    // A token that was never accepted is not believed to have expired.
    await Promise.all([...replicas, next].map((replica) => replica.serves()));
    await world.expire();
    // No client uses the replica that stops.
    await answered(3);
    expect(leaving.stdout).not.toContain('stopping: requests in flight');
    expect(await leaving.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(leaving.stdout).not.toContain('cut off');
    replicas[index] = backends[index] = next;
  }
  await Promise.all(clients.map((client) => client.end()));
  expect(exchanges()).toEqual(['answered', 'answered', 'answered']);
});
