import { describe, expect, onTestFinished, test } from 'vitest';
import type { Exchange, Stage } from '../../src/http/exchange.ts';
import { next, partsOf, gathered } from '../support/clients/multipart.ts';
import { handlerOf } from '../support/gateway/stages.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest, json } from '../support/imitations/scripted.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';

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

test.each(['nothing', 'a part'])(
  'a stream of which %s was read ends after 60 s without a reader, and what it holds is released',
  async (read) => {
    const clock = new ManualClock();
    let exchange: Exchange | undefined;
    const ends: string[] = [];
    const over = Promise.withResolvers<void>();
    const stage: Stage = (current) => {
      exchange = current;
      current.onEnd(() => ends.push('exchange'));
      current.onEnd(over.resolve);
      return { status: 200, headers: {}, body: endless(() => ends.push('stream')) };
    };
    const handler = handlerOf([stage], { clock });
    const response = await handler.fetch('http://localhost/');
    const reader = response.body!.getReader();
    await clock.pass(50 * SECOND);
    if (read === 'a part') {
      // The minute begins with the last part.
      await reader.read();
      await clock.pass(50 * SECOND);
    }
    expect([ends, exchange!.hasLeft]).toEqual([[], false]);
    clock.jump(15 * SECOND);
    await over.promise;
    await expect(reader.read()).rejects.toThrow('nobody read it for 60 s');
    expect(exchange!.hasLeft).toBe(true);
    expect(ends).toEqual(read === 'a part' ? ['exchange', 'stream'] : ['exchange']);
  },
);

test('a stream whose next part takes minutes does not count as one without a reader', async () => {
  const clock = new ManualClock();
  const gate = Promise.withResolvers<void>();
  const body = async function* () {
    yield 'a';
    await gate.promise;
    yield 'b';
  };
  const handler = handlerOf([() => ({ status: 200, headers: {}, body: body() })], { clock });
  const text = (await handler.fetch('http://localhost/')).text();
  await clock.pass(300 * SECOND);
  gate.resolve();
  expect(await text).toBe('ab');
});

async function* endless(onEnd: () => void) {
  try {
    for (;;) yield await Promise.resolve('part');
  } finally {
    onEnd();
  }
}

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
