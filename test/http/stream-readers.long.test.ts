import { once } from 'node:events';
import { expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { postBare, standstill } from '../support/clients/bare-client.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';
import { honest } from '../support/imitations/scripted.ts';
import { silence } from '../support/imitations/hostile-sockets.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

const STREAM = '{ allPersons @stream { id firstName } }';

test('a client that stops reading pauses the walk of 1,000,000 persons, and ends it by leaving', async () => {
  await using gateway = await startGatewayOverSandbox(
    { persons: 1_000_000 },
    { config: { drainMaxItems: 1_000_000, maxDrains: 1, maxAliases: 40 } },
  );
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  const requests = () => gateway.sandbox.stats.requests.graphql;
  // Large records, so that the buffers of the connection are soon full.
  const names = Array.from({ length: 40 }, (_, index) => `id${index}: id`).join(' ');
  const socket = postBare(server, `{ allPersons @stream { ${names} } }`, 'multipart/mixed');
  await once(socket, 'data');
  socket.pause();
  await standstill(requests);
  const stalled = requests();
  expect(stalled).toBeLessThan(500);

  socket.resume();
  await expect.poll(requests).toBeGreaterThan(stalled);
  socket.pause();
  await standstill(requests);
  const before = requests();
  socket.destroy();
  // The only slot for walks is free again. The previous walk, if it had continued, would have requested more pages.
  const { data } = await gateway.ask<{ allPersons: unknown[] }>('{ allPersons(limit: 99) { id } }');
  expect(data.allPersons).toHaveLength(99);
  expect(requests()).toBe(before + 2);
  await server.close();
});

test.each([
  ['a page', '{ persons { items { id } } }', []],
  ['a page, beside a plugin', '{ persons { items { id } } }', [everyHook()]],
  ['a stream', STREAM, []],
  ['a stream, beside a plugin', STREAM, [everyHook()]],
])(
  'when a client of %s leaves, the request in flight is aborted, and no further one is sent',
  async (_, query, plugins) => {
    await using gateway = await startGatewayOverFake({ persons: 1000 }, { plugins });
    const { upstream } = gateway;
    const pages = query === STREAM ? 2 : 0;
    if (query === STREAM) upstream.answer(honest, honest, silence, honest);
    else upstream.answer(silence, honest);
    const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
    const socket = postBare(server, query, 'multipart/mixed').resume();
    await upstream.arrived(pages + 1);
    socket.destroy();
    expect(await upstream.received[pages]!.over).toBe('cut');
    expect((await gateway.ask('{ persons { items { id } } }')).errors).toBeUndefined();
    expect(upstream.received).toHaveLength(pages + 2);
    await expect.poll(() => running(gateway)).toBe('0');
    await server.close();
  },
);

test.each(['leaves', 'cancels the body'])(
  'a client that %s before it reads anything of a stream ends its walk',
  async (how) => {
    await using gateway = await startGatewayOverSandbox({ persons: 1000 });
    const leaving = new AbortController();
    const response = await streamed(gateway, leaving.signal);
    expect(await running(gateway)).toBe('1');
    if (how === 'leaves') leaving.abort();
    else await response.body!.cancel();
    await expect.poll(() => running(gateway)).toBe('0');
  },
);

test('a client that cancels the body while it reads causes no entry in the log', async () => {
  await using gateway = await startGatewayOverFake({ persons: 1000 });
  const { upstream, logged } = gateway;
  upstream.answer(honest, silence);
  const response = await streamed(gateway);
  const reader = response.body!.getReader();
  // The first records, and the others of the first page.
  for (let part = 0; part < 2; part += 1) expect((await reader.read()).done).toBe(false);
  const pending = reader.read();
  await upstream.arrived(2);
  await reader.cancel();
  expect(await pending).toEqual({ done: true, value: undefined });
  expect(await upstream.received[1]!.over).toBe('cut');
  expect((await gateway.ask('{ __typename }')).errors).toBeUndefined();
  expect(logged.filter(({ level }) => Number(level) > 30)).toEqual([]);
});

test('a client that leaves before it reads anything of a shared stream does not end it for the others', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 1000 });
  const leaving = new AbortController();
  const [, stays] = await Promise.all([streamed(gateway, leaving.signal), streamed(gateway)]);
  leaving.abort();
  const text = await stays.text();
  expect(text.split('"id":')).toHaveLength(1001);
  expect(gateway.sandbox.stats.requests.graphql).toBeLessThan(30);
});

test('a client that stops reading makes the gateway read large pages ahead only as far as 16 MB go', async () => {
  const sdl = `
    type File { id: ID! content: String }
    type FilePage { items: [File!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }
    type Query { files(first: Int, after: String): FilePage! }`;
  const files = Array.from({ length: 1_400 }, (_, id) => ({ id: String(id) }));
  const content = 'x'.repeat(100_000);
  const schema = makeExecutableSchema(sdl, {
    Query: { files: (_: unknown, args: PageArgs) => pageOf(files, args) },
    File: { content: () => content },
  });
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: sdl });
  await gateway.ask('{ allFiles { id } }');
  const before = gateway.upstream.received.length;
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  const socket = postBare(server, '{ allFiles @stream { content } }', 'multipart/mixed');
  await once(socket, 'data');
  socket.pause();
  await standstill(() => gateway.upstream.received.length);
  // Eight in flight while their size is not known, and those that the buffers of the connection hold.
  expect(gateway.upstream.received.length - before).toBeLessThan(12);
  socket.destroy();
  await server.close();
});

/** The number of drains that run. */
async function running({ gateway }: TestGateway): Promise<string | undefined> {
  return /^recruiting_drains_running (\d)/m.exec(await gateway.metrics.text())?.[1];
}

async function streamed(gateway: TestGateway, signal?: AbortSignal): Promise<Response> {
  const response = await gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'multipart/mixed' },
    body: JSON.stringify({ query: '{ allPersons @stream(initialCount: 10) { id } }' }),
    ...(signal && { signal }),
  });
  expect(response.headers.get('content-type')).toMatch(/^multipart\/mixed/);
  return response;
}
