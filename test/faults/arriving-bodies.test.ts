import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest, type Reply } from '../support/imitations/scripted.ts';

const MEGABYTE = 1024 * 1024;
/** Megabytes are copied meanwhile, and other tests run. */
const LONG = { timeout: 20_000 };
const QUERY = '{ persons { items { firstName } } }';

test('requests that do not end take a limited part of the memory, and small ones are accepted all the same', async () => {
  await using gateway = await startGatewayOverFake(
    { persons: 1 },
    { config: { maxBodyBytes: 5 * MEGABYTE, requestBytes: 16 * MEGABYTE } },
  );
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const { port } = new URL(server.url);
  const large = 4 * MEGABYTE;
  const send = async (bytes: number) => {
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    // A refused connection may end while it is still sent on.
    socket.on('error', () => {});
    const answer = new Promise<string>((resolve) => {
      socket.once('data', (data) => resolve(data.toString()));
    });
    await once(socket, 'connect');
    const head = `POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${large}\r\n\r\n`;
    socket.write(head);
    socket.write(Buffer.alloc(bytes, ' '));
    return { socket, answer };
  };
  const unfinished = await Promise.all([1, 2, 3, 4, 5].map(() => send(large - 1)));
  const refusal = await Promise.race(unfinished.map(({ answer }) => answer));
  expect(refusal).toContain('429 Too Many Requests');
  expect(refusal).toContain('RATE_LIMITED');
  expect(await post(server.url, JSON.stringify({ query: QUERY }))).toMatchObject({ data: {} });
  for (const { socket } of unfinished) socket.destroy();
  // Nothing of them counts any more.
  await expect
    .poll(
      () => post(server.url, `${' '.repeat(large - 100)}${JSON.stringify({ query: QUERY })}`),
      LONG,
    )
    .toMatchObject({ data: {} });
});

test('answers of the service that are arriving take no more than ANSWER_BYTES together', async () => {
  await using gateway = await startGatewayOverFake(
    { persons: 1 },
    { config: { answerBytes: 3 * MEGABYTE } },
  );
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  const name = 'x'.repeat(2 * MEGABYTE);
  const answer = JSON.stringify({ data: { persons: { items: [{ firstName: name }] } } });
  const halting: Reply = async (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(answer.slice(0, -10));
    await gate.promise;
    response.end(answer.slice(-10));
  };
  upstream.answer(halting);
  const both = ['A', 'B'].map((operation) => gateway.ask(`query ${operation} ${QUERY}`));
  const earliest = await Promise.race(both);
  expect(earliest.errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED', retryAfter: 5 });
  gate.resolve();
  const [first, second] = await Promise.all(both);
  const whole = first === earliest ? second : first;
  expect(whole?.data).toEqual({ persons: { items: [{ firstName: name }] } });
  upstream.answer(honest);
  expect((await gateway.ask(QUERY)).errors).toBeUndefined();
});

test('the answer of a mutation is never refused: it has been executed', async () => {
  const snapshot = 'type Query { a: String } type Mutation { add(name: String): String }';
  await using gateway = await startGatewayOverFake(
    {},
    { snapshot, config: { answerBytes: 3 * MEGABYTE, mutations: 'all' } },
  );
  const gate = Promise.withResolvers<void>();
  const answer = `{"data":{"add":"${'x'.repeat(2 * MEGABYTE)}"}}`;
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let at = 0;
  gateway.upstream.answer(async (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(answer.slice(0, -10), () => begun[at++]!.resolve());
    await gate.promise;
    response.end(answer.slice(-10));
  });
  const both = ['A', 'B'].map((name) => gateway.ask(`mutation ${name} { add(name: "${name}") }`));
  await Promise.all(begun.map(({ promise }) => promise));
  // The gateway reads in these turns of the event loop what has been written.
  for (let turn = 0; turn < 500; turn += 1) await setImmediate();
  gate.resolve();
  for (const { errors } of await Promise.all(both)) expect(errors).toBeUndefined();
});

async function post(url: string, body: string): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  return await (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).json();
}
