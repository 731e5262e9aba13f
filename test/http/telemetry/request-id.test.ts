import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { after, honest, json } from '../../support/imitations/scripted.ts';
import { ask, gathered, partsOf } from '../../support/clients/multipart.ts';

const MADE = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/;

let gateway: GatewayOverFake;
beforeAll(async () => {
  gateway = await startGatewayOverFake({ persons: 120 });
});
afterAll(() => gateway[Symbol.asyncDispose]());

test('the request id of a caller is in the answer, in upstream requests and in the log', async () => {
  gateway.upstream.answer(honest);
  const before = gateway.upstream.received.length;
  const response = await named('from-the-caller_1.2', '{ persons { items { id } } }');
  expect(response.headers.get('x-request-id')).toBe('from-the-caller_1.2');
  expect(upstreamIds(before)).toEqual(['from-the-caller_1.2']);
  expect(linesOf('from-the-caller_1.2')).toMatchObject([{ msg: 'request', status: 200 }]);
});

test.each(['two words', 'x'.repeat(65), '{"level":60}', 'max@example.com'])(
  'the id %j is replaced by one of the gateway',
  async (name) => {
    const response = await named(name, '{ __typename }');
    const id = response.headers.get('x-request-id')!;
    expect(id).toMatch(MADE);
    expect(linesOf(id)).toHaveLength(1);
    expect(JSON.stringify(gateway.logged)).not.toContain(JSON.stringify(name));
  },
);

test('a stream has the request id in its headers and in its upstream requests', async () => {
  gateway.upstream.answer(honest);
  const before = gateway.upstream.received.length;
  const response = await ask(gateway, '{ allPersons @stream { id firstName } }');
  const id = response.headers.get('x-request-id')!;
  await gathered(partsOf(response));
  expect(id).toMatch(MADE);
  expect(new Set(upstreamIds(before))).toEqual(new Set([id]));
});

test('a shared upstream request has the id of the request that started it', async () => {
  const query = '{ persons(first: 2) { items { id firstName } } }';
  const before = gateway.upstream.received.length;
  const gate = Promise.withResolvers<void>();
  gateway.upstream.answer(after(gate.promise, honest));
  const first = named('who-began-it', query);
  await gateway.upstream.arrived(before + 1);
  const second = named('who-joined-it', query);
  const single = named('who-asks-alone', '{ persons(first: 3) { items { id } } }');
  await gateway.upstream.arrived(before + 2);
  gate.resolve();
  const answers = await Promise.all([first, second, single]);
  expect(answers.map(({ headers }) => headers.get('x-request-id'))).toEqual([
    'who-began-it',
    'who-joined-it',
    'who-asks-alone',
  ]);
  expect(new Set(upstreamIds(before))).toEqual(new Set(['who-began-it', 'who-asks-alone']));
});

test('a retried upstream request keeps its id, and the retry is logged with it', async () => {
  const before = gateway.upstream.received.length;
  gateway.upstream.answer(json({}, 503), honest);
  await named('sent-twice', '{ persons(first: 4) { items { id } } }');
  expect(upstreamIds(before)).toEqual(['sent-twice', 'sent-twice']);
  expect(linesOf('sent-twice')).toMatchObject([
    {
      msg: 'a request to the service got no usable answer',
      err: { message: expect.stringContaining('status 503') },
    },
    { msg: 'sending a request again', code: 'UPSTREAM_BAD_RESPONSE' },
    { msg: 'request', upstreamRequests: 2 },
  ]);
});

function named(id: string, query: string): Promise<Response> {
  return gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': id },
    body: JSON.stringify({ query }),
  });
}

function upstreamIds(from: number): unknown[] {
  return gateway.upstream.received.slice(from).map(({ headers }) => headers['x-request-id']);
}

function linesOf(id: string) {
  return gateway.logged.filter(({ requestId }) => requestId === id);
}
