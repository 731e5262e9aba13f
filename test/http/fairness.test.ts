import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Config } from '../../src/config.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { samplesOf } from '../support/processes/exposition.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { createLoopTurns } from '../../src/http/loop-turns.ts';
import { honest } from '../support/imitations/scripted.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

const GREEDY = 'key-of-a-greedy-caller';
const OTHER = 'key-of-another-caller';
/** Turns of the event loop, in which gateway and service run here. */
const TURNS_OF_ANSWER = 200;

test('mutations of one caller neither delay nor displace those of another', async () => {
  const { schema } = fullService();
  const world = await startWorld({ schema }, fullSdl, {
    mutations: 'all',
    upstreamConcurrency: 1,
  });
  const rename = (key: string, turn: number) =>
    world.ask(key, `mutation { rename(id: 1, name: "of ${key} ${turn}") { id } }`);
  const times = (count: number, key: string) =>
    Array.from({ length: count }, (_, turn) => rename(key, turn));

  const answers = times(1 + 100, GREEDY);
  await world.waiting('interactive', 100);
  expect(await rename(GREEDY, 101)).toMatchObject({
    errors: [{ extensions: { code: 'RATE_LIMITED' } }],
  });
  answers.push(...times(3, OTHER));
  await world.waiting('interactive', 103);
  world.go();
  for (const { errors } of await Promise.all(answers)) expect(errors).toBeUndefined();
  const callers = world.bodies().map((body) => (body.includes(OTHER) ? 'other' : 'greedy'));
  expect(callers.slice(0, 7).join(' ')).toBe('greedy greedy other greedy other greedy other');
});

test.each([
  ['drain', '{ allPersons { b: id } }'],
  ['lookup of an id', '{ person(id: "nobody") { b: id } }'],
])('many drains of one caller do not delay a %s of another', async (_, query) => {
  // One slot for drains, and one that is reserved for other requests.
  const world = await startWorld({ persons: 300 }, undefined, {
    upstreamConcurrency: 2,
    maxDrains: 8,
  });
  const selections = ['id', 'firstName', 'id firstName', 'firstName id', '__typename', 'a: id'];
  const ofGreedy = selections.map((selection) =>
    world.ask(GREEDY, `query Greedy { allPersons { ${selection} } }`),
  );
  await world.waiting('drain', selections.length - 1);
  const ofOther = world.ask(OTHER, `query Other ${query}`);
  world.go();
  expect((await ofOther).errors).toBeUndefined();
  const turns = world.bodies();
  const turnsOfOther = turns.filter((body) => body.includes('Other')).length;
  expect(turnsOfOther).toBeGreaterThan(5);
  // Until its next page waits for a turn again, another caller gets one more turn.
  expect(turns.length).toBeLessThanOrEqual(3 * turnsOfOther + 1);
  for (const { errors } of await Promise.all(ofGreedy)) expect(errors).toBeUndefined();
});

test('operations that arrive together begin in several turns of the event loop, so that probes are answered between them', async () => {
  let elapsed = 0;
  const clock = { ...systemClock, elapsed: () => (elapsed += 4) };
  await using gateway = await startGatewayOverFake({}, { clock });
  const spinning = new AbortController();
  const answers = Promise.all(
    Array.from({ length: 60 }, (_, at) => gateway.ask(`{ nope${at} }`)),
  ).finally(() => spinning.abort());
  let turns = 0;
  for (; !spinning.signal.aborted; turns += 1) await nextTurn();
  // Three operations take the 10 ms of a turn.
  expect(turns).toBeGreaterThanOrEqual(20);
  for (const { errors } of await answers) expect(errors).toHaveLength(1);
});

test('after a stop of the whole process for an hour, operations begin again within 100 turns', async () => {
  let elapsed = 0;
  const takeTurn = createLoopTurns({ elapsed: () => elapsed });
  expect(takeTurn()).toBeUndefined();
  elapsed += 3_600_000;
  let hasTurn = false;
  const turn = takeTurn()!.then(() => (hasTurn = true));
  for (let turns = 0; turns < 100; turns += 1) await nextTurn();
  expect(hasTurn).toBe(true);
  await turn;
});

/** Two callers of a gateway whose service does not answer before `go` is called. */
async function startWorld(
  service: Parameters<typeof startGatewayOverFake>[0],
  snapshot: string | undefined,
  settings: Partial<Config>,
) {
  const apiKeys = [GREEDY, OTHER].map((key) => entryFor(key, key, 'read', 'write', 'drain'));
  const auth = { apiKeys, jwt: undefined };
  const gateway = await startGatewayOverFake(service, {
    ...(snapshot !== undefined && { snapshot }),
    config: { ...settings, auth },
  });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const gate = Promise.withResolvers<void>();
  gateway.upstream.answer(async (...exchange) => {
    await gate.promise;
    // As a service of some milliseconds: meanwhile the next request of whoever was answered before waits for its turn.
    for (let turn = 0; turn < TURNS_OF_ANSWER; turn += 1) await nextTurn();
    await honest(...exchange);
  });
  return {
    ask: (key: string, query: string) => gateway.ask(query, {}, { headers: { 'x-api-key': key } }),
    /** Resolves when this number of requests waits for a turn. */
    waiting: async (priority: string, count: number) => {
      const series = `recruiting_upstream_requests_waiting{priority="${priority}"}`;
      const now = async () => samplesOf(await gateway.gateway.metrics.text()).get(series);
      await expect.poll(now, { interval: 2, timeout: 20_000 }).toBe(count);
    },
    go: () => gate.resolve(),
    /** The bodies of the upstream requests, in their order. */
    bodies: () => gateway.upstream.received.map(({ body }) => body),
  };
}
