import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { post } from '../http/front.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { serveHttp } from '../support/listening.ts';
import { honest, refusal, silence, unfinished } from '../service/replies.ts';

const PERSONS = '{ persons { items { id } } }';
const ALL = '{ allPersons { id } }';

test.each([
  ['the answer has not begun', PERSONS, [silence]],
  ['half of the answer is there', PERSONS, [unfinished]],
  ['a walk is under way', ALL, [honest, honest, silence]],
] as const)(
  'when the connection of a caller breaks, the request at the service is aborted, and nobody waits for it: %s',
  async (_when, query, [reply, ...replies]) => {
    // The only slot is free again, and the aborted request is not sent a second time.
    const config = { upstreamConcurrency: 1 };
    await using gateway = await startGatewayOverService({ persons: 1000 }, { config });
    await using server = await serveHttp(gateway.gateway.handler);
    const { service } = gateway;
    const sent = 1 + replies.length;
    service.answer(reply, ...replies, honest);
    const caller = new AbortController();
    const sending = post({ query }, { accept: 'application/json' });
    const left = fetch(`${server.url}/graphql`, { ...sending, signal: caller.signal });
    left.catch(() => {});
    await service.arrived(sent);
    caller.abort();
    expect(await service.received[sent - 1]!.over).toBe('cut');
    await expect(left).rejects.toThrow('abort');
    expect((await gateway.ask(PERSONS)).errors).toBeUndefined();
    expect(service.received).toHaveLength(sent + 1);
    const WARN = 40;
    expect(gateway.logged.filter(({ level }) => Number(level) >= WARN)).toEqual([]);
  },
);

test('a caller who leaves while the token is renewed ends neither the renewal nor the wait of others, and its request is not sent again', async () => {
  await using gateway = await startGatewayOverService();
  const { service, store } = gateway;
  const query = 'query ($first: Int) { persons(first: $first) { items { id } } }';
  expect((await gateway.ask(query, { first: 1 })).errors).toBeUndefined();
  const { generation } = (await store.read()).state!;
  service.answer(refusal('token_expired'), refusal('token_expired'), honest);
  const renewal = service.tokenAnswers.hold('before');
  const caller = new AbortController();
  const left = Promise.allSettled([gateway.ask(query, { first: 2 }, { signal: caller.signal })]);
  await renewal.arrived;
  const staying = gateway.ask(query, { first: 3 });
  await service.arrived(3);
  caller.abort();
  await left;
  renewal.release();
  expect((await staying).errors).toBeUndefined();
  expect((await store.read()).state!.generation).toBe(generation + 1);
  const asked = service.received.map(({ body }) => JSON.parse(body).variables.first);
  expect(asked).toEqual([1, 2, 3, 3]);
});

test('a drain whose caller left before it began ends without an error, and nothing is sent', async () => {
  await using gateway = await startGatewayOverService();
  const signal = AbortSignal.abort(new Error('left'));
  // An unhandled rejection would end the process; here it would fail the run.
  await Promise.allSettled([gateway.ask(ALL, {}, { signal })]);
  await setImmediate();
  expect(gateway.service.received).toHaveLength(0);
});
