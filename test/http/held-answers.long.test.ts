import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { postBare } from '../support/clients/bare-client.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest, json, text } from '../support/imitations/scripted.ts';
import { silence } from '../support/imitations/hostile-sockets.ts';

const MAX = 8_300_000;
/** Poll for longer than the default second: megabytes are copied meanwhile, and other tests run. */
const LONG = { timeout: 20_000 };
/** More than the buffers of a socket hold, and less than the largest answer of the service. */
const LARGE = 'x'.repeat(8_000_000);
const large = json({ data: { persons: { items: [{ firstName: LARGE }] } } });

async function listening() {
  const gateway = await startGatewayOverFake({ persons: 3_000 }, { config: { answerBytes: MAX } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const gauge = async (name: string) =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await gateway.gateway.metrics.text())?.[1]);
  const post = (query: string, accept = 'application/json') => {
    const socket = postBare(server, query, accept);
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return {
    gateway,
    post,
    bytes: () => gauge('recruiting_answer_bytes'),
  };
}

test('unread answers are counted, further answers are refused, and at the end nothing is held', async () => {
  const { gateway, post, bytes } = await listening();
  gateway.upstream.answer(large);
  const first = post('query A { persons { items { firstName } } }');
  await once(first, 'data');
  first.pause();
  expect(await bytes()).toBeGreaterThan(LARGE.length);
  expect(await bytes()).toBeLessThan(MAX);
  const second = post('query B { persons { items { firstName } } }');
  const [refusal] = (await once(second, 'data')) as [Buffer];
  expect(refusal.toString()).toContain('RATE_LIMITED');
  first.destroy();
  await expect.poll(bytes, LONG).toBe(0);
});

test('after a request has ended in any way, nothing of its answer is held', async () => {
  const { gateway, post, bytes } = await listening();
  const { upstream } = gateway;
  const leaves = async (query: string, accept?: string) => {
    const socket = post(query, accept);
    await once(socket, 'data');
    socket.pause();
    socket.destroy();
  };
  upstream.answer(large);
  await leaves('query Reading { persons { items { firstName } } }');
  await gateway.ask('query Fetched { persons { items { firstName } } }');
  upstream.answer(json({ data: { persons: { items: [{ firstName: LARGE.repeat(2) }] } } }));
  expect(
    (await gateway.ask('query TooLarge { persons { items { firstName } } }')).errors,
  ).toHaveLength(1);
  upstream.answer(
    text(
      `{"data": {"persons": {"items": [{"firstName": "${LARGE}"}, null]}}, "errors": [{"message": "no"}]}`,
    ),
  );
  await leaves('query General { persons { items { firstName } } }');
  upstream.answer(honest);
  await leaves('{ allPersons { id firstName } }');
  await leaves('{ personsConnection(first: 100) { edges { node { id firstName } } } }');
  await leaves('{ allPersons @stream { id firstName } }', 'multipart/mixed');
  upstream.answer(silence);
  const arrived = upstream.received.length;
  const early = post('query Early { persons { items { firstName } } }');
  await upstream.arrived(arrived + 1);
  early.destroy();
  await expect.poll(bytes, LONG).toBe(0);
});

test('a connection with a page that is too large returns no list without that page', async () => {
  const gateway = await startGatewayOverFake({ persons: 51 }, { config: { answerBytes: 70_000 } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const long = 'n'.repeat(150);
  const wide = Array.from({ length: 12 }, (_, at) => `${long}${at}: firstName`).join(' ');
  const { data, errors } = await gateway.ask<{ personsConnection: object | null }>(
    `{ personsConnection(first: 60) { edges { node { id ${wide} } } nodes { id } pageInfo { hasNextPage } } }`,
  );
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'OPERATION_TOO_COMPLEX' });
  const lists = Object.values(data.personsConnection ?? {}).filter((value) => Array.isArray(value));
  expect(lists).toEqual([]);
});
