import { expect, test } from 'vitest';
import { startSteadyLoad } from '../support/processes/steady-load.ts';
import { allServe, startReplicaWorld } from '../support/postgres/replicas.ts';

const REPLICAS = 2;
const EXPIRIES = 2;

test(`${REPLICAS} replicas on PostgreSQL make one exchange for each of ${EXPIRIES} expiries, and no request fails`, async () => {
  await using world = await startReplicaWorld();
  await world.tokens(['import', world.sandbox.tokenLink]);
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => world.serve()));
  await allServe(replicas);
  const before = world.sandbox.exchanges.length;
  const loads = replicas.map(({ url }) => startSteadyLoad(new URL(url).origin, 1));
  for (let expiry = 0; expiry < EXPIRIES; expiry += 1) {
    await world.expire();
    await Promise.all(loads.map((load) => load.answered(1)));
  }
  expect((await Promise.all(loads.map((load) => load.end()))).flat()).toEqual([]);
  expect(world.outcomes(before)).toEqual(Array(EXPIRIES).fill('answered'));
}, 120_000);
