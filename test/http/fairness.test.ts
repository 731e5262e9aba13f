import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { honest } from '../service/replies.ts';

const GREEDY = 'key-of-a-greedy-caller';
const OTHER = 'key-of-another-caller';
/** Turns of the event loop, in which gateway and service run here. */
const TURNS_OF_ANSWER = 200;

test.each([
  ['drain', '{ allPersons { b: id } }'],
  ['lookup of an id', '{ person(id: "nobody") { b: id } }'],
])('many drains of one caller do not delay a %s of another', async (_, query) => {
  const apiKeys = [GREEDY, OTHER].map((key) => entryFor(key, key, 'read', 'drain'));
  // One slot for drains, and one that is reserved for other requests.
  const config = { auth: { apiKeys, jwt: undefined }, upstreamConcurrency: 2, maxDrains: 8 };
  await using gateway = await startGatewayOverService({ persons: 300 }, { config });
  const gate = Promise.withResolvers<void>();
  gateway.service.answer(async (...exchange) => {
    await gate.promise;
    // As a service of some milliseconds: meanwhile the next request of whoever was answered before waits for its turn.
    for (let turn = 0; turn < TURNS_OF_ANSWER; turn += 1) await nextTurn();
    await honest(...exchange);
  });
  const ask = (key: string, text: string) =>
    gateway.ask(text, {}, { headers: { 'x-api-key': key } });
  const selections = ['id', 'firstName', 'id firstName', 'firstName id', '__typename', 'a: id'];
  const ofGreedy = selections.map((selection) =>
    ask(GREEDY, `query Greedy { allPersons { ${selection} } }`),
  );
  const series = 'recruiting_upstream_requests_waiting{priority="drain"}';
  const waiting = async () => (await gateway.samples()).get(series);
  await expect.poll(waiting, { interval: 2, timeout: 20_000 }).toBe(selections.length - 1);
  const ofOther = ask(OTHER, `query Other ${query}`);
  gate.resolve();
  expect((await ofOther).errors).toBeUndefined();
  const turns = gateway.service.received.map(({ body }) => body);
  const turnsOfOther = turns.filter((body) => body.includes('Other')).length;
  expect(turnsOfOther).toBeGreaterThan(5);
  // Until its next page waits for a turn again, another caller gets one more turn.
  expect(turns.length).toBeLessThanOrEqual(3 * turnsOfOther + 1);
  for (const { errors } of await Promise.all(ofGreedy)) expect(errors).toBeUndefined();
});
