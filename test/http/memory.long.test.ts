import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { openBare, postBare } from '../support/clients/bare-client.ts';
import { all, whole as listIn } from '../support/clients/multipart.ts';
import { codesOf } from '../support/gateway/codes.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';
import { silence } from '../support/imitations/hostile-sockets.ts';
import type { Reply } from '../service/service.ts';
import { honest, json, text } from '../support/imitations/scripted.ts';
import { post } from './front.ts';

const MEGABYTE = 1024 * 1024;
/** More than the buffers of a socket hold, and less than the largest answer of the service. */
const LARGE = 'x'.repeat(8_000_000);
const large = json({ data: { persons: { items: [{ firstName: LARGE }] } } });
const QUERY = 'query { persons { items { firstName } } }';
const named = (name: string) => QUERY.replace('query', `query ${name}`);
/** Polls for longer than the default second: megabytes are copied meanwhile, and other tests run. */
const LONG = { timeout: 20_000 };

async function start(config: TestGatewayOptions['config']) {
  const gateway = await startGatewayOverFake({ persons: 3_000 }, { config: config ?? {} });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  return {
    gateway,
    url: server.url,
    upstream: gateway.upstream,
    post: (query: string, accept = 'application/json') => {
      const socket = postBare(server, query, accept);
      onTestFinished(() => void socket.destroy());
      return socket;
    },
    bytes: () => bytesOf(gateway),
  };
}

/** The bytes of answers that are held, as the metrics report them. */
async function bytesOf({ gateway }: GatewayOverFake): Promise<number> {
  return Number(/^recruiting_answer_bytes (\d+)$/m.exec(await gateway.metrics.text())?.[1]);
}

test('unread answers count in ANSWER_BYTES, and further answers are refused', async () => {
  const { upstream, post: send, bytes } = await start({ answerBytes: 8_300_000 });
  upstream.answer(large);
  const first = send(named('A'));
  await once(first, 'data');
  first.pause();
  expect(await bytes()).toBeGreaterThan(LARGE.length);
  const [refusal] = (await once(send(named('B')), 'data')) as [Buffer];
  expect(refusal.toString()).toContain('RATE_LIMITED');
  first.destroy();
  await expect.poll(bytes, LONG).toBe(0);
});

test('answers of the service that are arriving count in ANSWER_BYTES together', async () => {
  const { gateway, upstream } = await start({ answerBytes: 3 * MEGABYTE });
  const gate = Promise.withResolvers<void>();
  const answer = `{"data":{"persons":{"items":[{"firstName":"${'x'.repeat(2 * MEGABYTE)}"}]}}}`;
  upstream.answer(halting(answer, gate.promise));
  const both = ['A', 'B'].map((name) => gateway.ask(named(name)));
  const refused = await Promise.race(both);
  expect(refused.errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED', retryAfter: 5 });
  gate.resolve();
  const [first, second] = await Promise.all(both);
  const whole = first === refused ? second : first;
  expect(JSON.stringify(whole)).toBe(answer);
  upstream.answer(honest);
  expect((await gateway.ask(QUERY)).errors).toBeUndefined();
});

test('the answer of a mutation is never refused: it has been executed', async () => {
  const snapshot = 'type Query { a: String } type Mutation { add(name: String): String }';
  const config = { answerBytes: 3 * MEGABYTE, mutations: 'all' as const };
  await using gateway = await startGatewayOverFake({}, { snapshot, config });
  const gate = Promise.withResolvers<void>();
  const answer = `{"data":{"add":"${'x'.repeat(2 * MEGABYTE)}"}}`;
  let begun = 0;
  gateway.upstream.answer(halting(answer, gate.promise, () => (begun += 1)));
  const both = ['A', 'B'].map((name) => gateway.ask(`mutation ${name} { add(name: "${name}") }`));
  await expect.poll(() => begun).toBe(2);
  // The gateway reads in these turns of the event loop what has been written.
  for (let turn = 0; turn < 500; turn += 1) await setImmediate();
  gate.resolve();
  for (const { errors } of await Promise.all(both)) expect(errors).toBeUndefined();
});

test.each<[string, Reply, string]>([
  ['while the service has not answered', silence, QUERY],
  ['while it reads', large, QUERY],
  [
    'while it reads an answer with an error',
    text(
      `{"data":{"persons":{"items":[{"firstName":"${LARGE}"},null]}},"errors":[{"message":"no"}]}`,
    ),
    QUERY,
  ],
  ['while it reads a drain', honest, '{ allPersons { id firstName } }'],
  [
    'while it reads a connection',
    honest,
    '{ personsConnection(first: 100) { edges { node { id firstName } } } }',
  ],
  ['while it reads a stream', honest, '{ allPersons @stream { id firstName } }'],
])('nothing is held for a client that leaves %s', async (_, reply, query) => {
  const { upstream, post: send, bytes } = await start({ answerBytes: 8_300_000 });
  upstream.answer(reply);
  const socket = send(query, query.includes('@stream') ? 'multipart/mixed' : undefined);
  if (reply === silence) await upstream.arrived(1);
  else await once(socket, 'data');
  socket.destroy();
  await expect.poll(bytes, LONG).toBe(0);
});

test.each([
  ['the field of an id', 'type Query { person(id: ID!): Person'],
  ['a list', 'type Query {'],
])('records that are found with %s count in ANSWER_BYTES', async (_, root) => {
  const snapshot = `
    type Person { id: ID! text: String }
    type PersonPage { items: [Person!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }
    ${root} persons(first: Int, after: String): PersonPage! }`;
  const persons = Array.from({ length: 600 }, (__, id) => ({ id: String(id) }));
  const find = (__: unknown, { id }: { id: string }) => persons[Number(id)] ?? null;
  const list = (__: unknown, args: PageArgs) => pageOf(persons, args);
  const schema = makeExecutableSchema(snapshot, {
    Query: root.includes('person') ? { person: find, persons: list } : { persons: list },
    Person: { text: () => 'x'.repeat(5_000) },
  });
  const config = { answerBytes: MEGABYTE };
  await using gateway = await startGatewayOverFake({ schema }, { snapshot, config });
  const find600 = (selection: string, count: number) =>
    gateway.ask<{ _entities: object[] }>(
      `query ($r: [_Any!]!) { _entities(representations: $r) { ... on Person { ${selection} } } }`,
      { r: persons.slice(0, count).map(({ id }) => ({ __typename: 'Person', id })) },
    );
  const refused = new Set(codesOf(await find600('text', 600)));
  expect(refused.size).toBeGreaterThan(0);
  // Answers of the service that arrive at the same time may be refused as such.
  expect(['OPERATION_TOO_COMPLEX', 'RATE_LIMITED']).toEqual(expect.arrayContaining([...refused]));
  // A page that is too large is not narrowed down to its records.
  expect(gateway.upstream.received.length).toBeLessThan(40);
  expect((await find600('id', 10)).data._entities).toHaveLength(10);
  expect(await bytesOf(gateway)).toBe(0);
});

test('the first records of a stream count in ANSWER_BYTES, and those after them do not', async () => {
  const { gateway } = await start({ answerBytes: 50_000 });
  const wide = `${'n'.repeat(200)}: firstName`;
  const streamed = (count: number) =>
    all(gateway, `{ allPersons(limit: 600) @stream(initialCount: ${count}) { ${wide} } }`);
  expect(listIn(await streamed(1))).toHaveLength(600);
  expect(JSON.stringify(await streamed(600))).toContain('OPERATION_TOO_COMPLEX');
});

test('a connection with a page that is too large returns no list without that page', async () => {
  const { gateway } = await start({ answerBytes: 70_000 });
  const wide = Array.from({ length: 12 }, (_, at) => `${'n'.repeat(150)}${at}: firstName`).join(
    ' ',
  );
  const { data, errors } = await gateway.ask<{ personsConnection: object | null }>(
    `{ personsConnection(first: 60) { edges { node { id ${wide} } } nodes { id } pageInfo { hasNextPage } } }`,
  );
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'OPERATION_TOO_COMPLEX' });
  const lists = Object.values(data.personsConnection ?? {}).filter((value) => Array.isArray(value));
  expect(lists).toEqual([]);
});

test('requests that do not end take a limited part of the memory, and small ones are accepted all the same', async () => {
  const { url } = await start({ maxBodyBytes: 5 * MEGABYTE, requestBytes: 16 * MEGABYTE });
  const size = 4 * MEGABYTE;
  const head = `POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${size}\r\n\r\n`;
  const unfinished = Array.from({ length: 5 }, () => {
    const socket = openBare({ url }, head);
    socket.write(Buffer.alloc(size - 1, ' '));
    return socket;
  });
  const [refusal] = (await Promise.race(unfinished.map((each) => once(each, 'data')))) as [Buffer];
  expect(refusal.toString()).toMatch(/^HTTP\/1.1 429 Too Many Requests[^]*RATE_LIMITED/);
  const ask = async (body: string) => (await fetch(`${url}/graphql`, post(body))).json();
  const small = JSON.stringify({ query: '{ __typename }' });
  expect(await ask(small)).toMatchObject({ data: {} });
  for (const socket of unfinished) socket.destroy();
  // Nothing of them counts any more.
  await expect.poll(() => ask(small.padStart(size)), LONG).toMatchObject({ data: {} });
});

test('a request beyond those that may wait is refused, and a later one is answered', async () => {
  const { gateway, upstream } = await start({ maxRequests: 2 });
  const gate = Promise.withResolvers<void>();
  upstream.answer(async (...exchange) => {
    await gate.promise;
    await honest(...exchange);
  });
  const waiting = ['A', 'B'].map((name) => gateway.ask(named(name)));
  await upstream.arrived(2);
  expect(codesOf(await gateway.ask('{ __typename }'))).toEqual(['RATE_LIMITED']);
  gate.resolve();
  for (const { errors } of await Promise.all(waiting)) expect(errors).toBeUndefined();
  expect(codesOf(await gateway.ask('{ __typename }'))).toEqual([]);
});

/** Sends an answer, and its end only when the gate opens. */
function halting(answer: string, gate: Promise<void>, begun: () => void = () => {}): Reply {
  return async (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(answer.slice(0, -10), begun);
    await gate;
    response.end(answer.slice(-10));
  };
}
