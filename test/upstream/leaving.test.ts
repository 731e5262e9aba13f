import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { honest, refusal } from '../service/replies.ts';

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
  await Promise.allSettled([gateway.ask('{ allPersons { id } }', {}, { signal })]);
  await setImmediate();
  expect(gateway.service.received).toHaveLength(0);
});
