import { describe, expect, onTestFinished, test } from 'vitest';
import { next, partsOf, gathered } from '../support/clients/multipart.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest, json } from '../support/imitations/scripted.ts';

const STREAM = '{ allPersons @stream { id } }';

test('a stream is logged when it was read to its end, with its time and its pages', async () => {
  const gateway = await started();
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(honest, after(gate.promise, honest));
  const parts = partsOf(await streamed(gateway));
  await next(parts);
  await next(parts);
  expect(linesOf(gateway)).toEqual([]);
  expect(await counted(gateway)).toEqual([]);
  gate.resolve();
  await gathered(parts);
  expect(linesOf(gateway)).toEqual([
    expect.objectContaining({
      status: 200,
      pages: upstream.received.length,
      operationType: 'query',
    }),
  ]);
  expect(linesOf(gateway)[0]).not.toHaveProperty('code');
  expect(await counted(gateway)).toEqual(['recruiting_requests_total{operation="",code="OK"} 1']);
});

test('an error behind the first part of a stream is in its log line and in the metrics', async () => {
  const gateway = await started();
  gateway.upstream.answer(honest, json({ data: null, errors: [{ message: 'No page.' }] }));
  await gathered(partsOf(await streamed(gateway)));
  expect(linesOf(gateway)).toMatchObject([{ status: 200, code: 'DRAIN_INTERRUPTED' }]);
  expect(await counted(gateway)).toEqual([
    'recruiting_requests_total{operation="",code="DRAIN_INTERRUPTED"} 1',
  ]);
});

test('what a stream holds counts against ANSWER_BYTES until it is read to its end', async () => {
  const gateway = await started();
  const held = async () =>
    Number(/^recruiting_answer_bytes (\d+)$/m.exec(await gateway.gateway.metrics.text())?.[1]);
  const items = [{ firstName: 'x'.repeat(300_000) }];
  gateway.upstream.answer(json({ data: { persons: { items } } }), honest);
  const query = '{ persons { items { firstName } } allPersons(limit: 60) @stream { id } }';
  const parts = partsOf(await streamed(gateway, query));
  await next(parts);
  expect(await held()).toBeGreaterThan(300_000);
  await gathered(parts);
  expect(await held()).toBe(0);
});

describe('a caller who leaves a stream', () => {
  test.each(['before its first part', 'behind a part'])(
    'by an abort %s is logged as LEFT, and the body ends with the reason of the abort',
    async (when) => {
      const gateway = await started();
      const leaving = new AbortController();
      const response = await streamed(gateway, STREAM, leaving.signal);
      const reader = response.body!.getReader();
      if (when === 'behind a part') await reader.read();
      const reading = reader.read();
      leaving.abort(new Error('Enough.'));
      // A part may be on its way.
      await expect(reading.then(() => reader.read())).rejects.toThrow('Enough.');
      expect(linesOf(gateway)).toMatchObject([{ status: 200, code: 'LEFT' }]);
    },
  );

  test('by a cancel is logged as LEFT, once', async () => {
    const gateway = await started();
    const leaving = new AbortController();
    const response = await streamed(gateway, STREAM, leaving.signal);
    await response.body!.cancel();
    leaving.abort();
    expect(linesOf(gateway)).toMatchObject([{ status: 200, code: 'LEFT' }]);
  });

  test('before the reply gets the reason of the abort, and is logged without a status', async () => {
    const gateway = await started();
    const never = Promise.withResolvers<void>();
    onTestFinished(() => never.resolve());
    gateway.upstream.answer(after(never.promise, honest));
    const leaving = new AbortController();
    const response = streamed(gateway, '{ allPersons { id } }', leaving.signal);
    await gateway.upstream.arrived(1);
    leaving.abort(new Error('Enough.'));
    await expect(response).rejects.toThrow('Enough.');
    expect(linesOf(gateway)).toMatchObject([{ code: 'LEFT' }]);
    expect(linesOf(gateway)[0]).not.toHaveProperty('status');
  });
});

async function started(): Promise<GatewayOverFake> {
  const gateway = await startGatewayOverFake({ persons: 200 });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

function streamed(
  gateway: GatewayOverFake,
  query = STREAM,
  signal?: AbortSignal,
): Promise<Response> {
  return gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'multipart/mixed' },
    body: JSON.stringify({ query }),
    ...(signal && { signal }),
  });
}

function linesOf({ logged }: GatewayOverFake) {
  return logged.filter(({ msg }) => msg === 'request');
}

/** What the metrics say of the requests that have ended. */
async function counted({ gateway }: GatewayOverFake): Promise<readonly string[]> {
  return (await gateway.metrics.text()).match(/^recruiting_requests_total\{.*/gm) ?? [];
}
