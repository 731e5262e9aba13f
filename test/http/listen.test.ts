import { once } from 'node:events';
import { Agent, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { headOf, openBare } from '../support/clients/bare-client.ts';
import { handlerOf } from '../support/gateway/stages.ts';

test.each([
  ['has not begun', '', 'close'],
  // Its head is written by now.
  ['has begun, whose client may send more on its connection', 'half, ', 'keep-alive'],
])('closing waits for an answer that %s, and for nothing else', async (_, half, connection) => {
  const arrived = Promise.withResolvers<ServerResponse>();
  const options = { ...LOOPBACK, patienceMs: 600_000 };
  const server = await listen((_request, response) => arrived.resolve(response), options);
  const reply = read(server.url, keepAlive());
  const response = await arrived.promise;
  if (half !== '') response.write(half);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  const closing = server.close();
  const another = () => fetch(server.url).catch(() => 'refused');
  await expect.poll(another, { interval: 5 }).toBe('refused');
  response.end('whole');
  expect(await reply).toMatchObject({ body: `${half}whole`, connection });
  await closing;
});

test('before closing, new connections are accepted, and each answer is the last one of its connection', async () => {
  const server = await whole();
  const agent = keepAlive();
  expect(await read(server.url, agent)).toMatchObject({ body: 'whole', connection: 'keep-alive' });
  // Longer than load balancers keep an idle connection.
  const { headers } = await fetch(server.url);
  expect(Number(/^timeout=(\d+)$/.exec(headers.get('keep-alive')!)![1])).toBeGreaterThan(600);
  server.keepNoConnections();
  expect(await read(server.url, agent)).toMatchObject({ body: 'whole', connection: 'close' });
  expect(await read(server.url, keepAlive())).toMatchObject({ body: 'whole', connection: 'close' });
  await server.close();
});

test('a client that sends a body bit by bit is cut', async () => {
  const server = await whole({
    timeOuts: { headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 20 },
  });
  const begin = 'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n';
  const slow = openBare(server, begin);
  const drops = setInterval(() => slow.write('x'), 10);
  expect(await headOf(slow)).toMatch(/^HTTP\/1\.1 408 /);
  clearInterval(drops);
});

test('a client that sends a thousand requests at once, without reading an answer, is cut', async () => {
  let most = 0;
  const server = await listen(() => (most += 1), LOOPBACK);
  onTestFinished(() => server.close());
  const socket = openBare(server, 'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(1_000));
  await new Promise((closed) => socket.once('close', closed));
  expect(most).toBeLessThan(100);
});

test('above the limit, new connections are closed, and those that are open are kept', async () => {
  const responses: ServerResponse[] = [];
  let reports = 0;
  const server = await listen((_request, response) => void responses.push(response), {
    ...LOOPBACK,
    maxConnections: 2,
    onFull: () => (reports += 1),
  });
  onTestFinished(() => server.close());
  const answers = [read(server.url, keepAlive()), read(server.url, keepAlive())];
  await expect.poll(() => responses.length).toBe(2);
  for (let time = 0; time < 2; time += 1) {
    await expect(fetch(server.url)).rejects.toThrow('fetch failed');
  }
  expect(reports).toBe(1);
  for (const response of responses) response.end('whole');
  expect(await Promise.all(answers)).toMatchObject([{ body: 'whole' }, { body: 'whole' }]);
});

test('a client that does not read a large answer is cut, and one that waits as long for its answer is kept', async () => {
  const large = Buffer.alloc(16_000_000, 'x');
  const answers: ServerResponse[] = [];
  const left: Promise<unknown>[] = [];
  const ofYoga = handlerOf(() => ({ status: 200, headers: {}, body: [large] }));
  const handler = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/waiting') return void answers.push(response);
    left.push(once(request.socket, 'close'));
    if (request.url === '/large') response.end(large);
    else ofYoga.handler(request, response);
  };
  const server = await listen(handler, { ...LOOPBACK, timeOuts: { readTimeout: 300 } });
  onTestFinished(() => server.close());
  const waiting = fetch(`${server.url}/waiting`);
  await expect.poll(() => answers.length).toBe(1);
  for (const path of ['/large', '/of-yoga']) {
    const socket = openBare(server, `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    onTestFinished(() => void socket.destroy());
    await once(socket, 'readable');
  }
  await Promise.all(left);
  answers[0]!.end('at last');
  expect(await (await waiting).text()).toBe('at last');
});

const LOOPBACK = { host: '127.0.0.1', port: 0 };

/** A server that answers every request at once. */
async function whole(options: Partial<Parameters<typeof listen>[1]> = {}) {
  const server = await listen(
    (request, response) =>
      void request.resume().once('end', () => {
        response.write('who');
        response.end('le');
      }),
    { ...LOOPBACK, ...options },
  );
  onTestFinished(() => server.close());
  return server;
}

function keepAlive(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return agent;
}

async function read(url: string, agent: Agent) {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  return { body: await text(response), connection: response.headers.connection };
}
