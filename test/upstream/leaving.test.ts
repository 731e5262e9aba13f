import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { listen } from '../../src/http/listen.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { after, honest, refusal, silence, text, unfinished } from '../service/replies.ts';

const PERSONS = 'query ($first: Int) { persons(first: $first) { items { id } } }';
const ALL = '{ allPersons { id } }';

test.each([
  ['the answer has not begun', PERSONS, [silence]],
  ['half of the answer is there', PERSONS, [unfinished]],
  ['a walk is under way', ALL, [honest, honest, silence]],
] as const)(
  'when a caller leaves, the request at the service is aborted, and no failure is logged: %s',
  async (_when, query, [reply, ...replies]) => {
    await using gateway = await startGatewayOverService({ persons: 1000 });
    const { service } = gateway;
    const sent = 1 + replies.length;
    service.answer(reply, ...replies, honest);
    const caller = new AbortController();
    const left = Promise.allSettled([gateway.ask(query, {}, { signal: caller.signal })]);
    await service.arrived(sent);
    caller.abort();
    expect(await service.received[sent - 1]!.over).toBe('cut');
    await left;
    expect((await gateway.ask(PERSONS)).errors).toBeUndefined();
    expect(service.received).toHaveLength(sent + 1);
    const WARN = 40;
    expect(gateway.logged.filter(({ level }) => Number(level) >= WARN)).toEqual([]);
  },
);

test('a query whose caller left is not sent again', async () => {
  const asleep = Promise.withResolvers<AbortSignal | undefined>();
  let isSent = false;
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => {
      // Before that, calls of the token store wait in short steps.
      if (isSent && ms < 15_000) asleep.resolve(signal);
      return systemClock.sleep(600_000, signal);
    },
  };
  await using gateway = await startGatewayOverService({}, { clock });
  const { service } = gateway;
  service.answer(text('', 503), honest);
  const caller = new AbortController();
  void service.arrived(1).then(() => (isSent = true));
  const left = Promise.allSettled([gateway.ask(PERSONS, {}, { signal: caller.signal })]);
  const signal = await asleep.promise;
  caller.abort();
  await left;
  expect(signal?.aborted).toBe(true);
  expect((await gateway.ask(PERSONS)).errors).toBeUndefined();
  expect(service.received).toHaveLength(2);
});

test('a caller who leaves while the token is renewed ends neither the renewal nor the wait of others', async () => {
  await using gateway = await startGatewayOverService();
  const { service, store } = gateway;
  expect((await gateway.ask(PERSONS)).errors).toBeUndefined();
  const generation = (await store.read()).state!.generation;
  const both = service.arrived(3);
  service.answer(
    after(both, refusal('token_expired')),
    after(both, refusal('token_expired')),
    honest,
  );
  const caller = new AbortController();
  const left = Promise.allSettled([gateway.ask(PERSONS, { first: 1 }, { signal: caller.signal })]);
  await service.arrived(2);
  const staying = gateway.ask(PERSONS, { first: 2 });
  await both;
  caller.abort();
  await left;
  expect((await staying).errors).toBeUndefined();
  expect((await store.read()).state!.generation).toBe(generation + 1);
});

test('a request whose caller leaves while the token is renewed is not sent again', async () => {
  await using gateway = await startGatewayOverService();
  const { service } = gateway;
  expect((await gateway.ask(PERSONS)).errors).toBeUndefined();
  service.answer(refusal('token_expired'), honest);
  const renewal = service.tokenAnswers.hold('before');
  const caller = new AbortController();
  const left = Promise.allSettled([gateway.ask(PERSONS, { first: 1 }, { signal: caller.signal })]);
  await renewal.arrived;
  caller.abort();
  await left;
  renewal.release();
  expect((await gateway.ask(PERSONS, { first: 2 })).errors).toBeUndefined();
  const bodies = service.received.map(({ body }) => JSON.parse(body).variables);
  expect(bodies).toEqual([{}, { first: 1 }, { first: 2 }]);
});

test('a caller whose connection breaks has left too, and does not delay others', async () => {
  await using gateway = await startGatewayOverService({}, { config: { upstreamConcurrency: 1 } });
  const { service } = gateway;
  service.answer(silence, honest);
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  const post = (signal: AbortSignal | null) =>
    fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: PERSONS }),
      signal,
    });
  const caller = new AbortController();
  const left = Promise.allSettled([post(caller.signal)]);
  await service.arrived(1);
  caller.abort();
  expect(await service.received[0]!.over).toBe('cut');
  await left;
  // The only slot is free again, and the aborted request is not sent a second time.
  expect((await post(null)).status).toBe(200);
  expect(service.received).toHaveLength(2);
  await server.close();
});

test('a drain whose caller left before it began ends without an error, and nothing is sent', async () => {
  await using gateway = await startGatewayOverService();
  const signal = AbortSignal.abort(new Error('left'));
  // An unhandled rejection would end the process; here it would fail the run.
  await Promise.allSettled([gateway.ask(ALL, {}, { signal })]);
  await setImmediate();
  expect(gateway.service.received).toHaveLength(0);
});
