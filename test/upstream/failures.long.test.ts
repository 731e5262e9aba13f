import { gzipSync } from 'node:zlib';
import { printSchema } from 'graphql';
import { expect, test } from 'vitest';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest, json, refusal, text, type Reply } from '../support/imitations/scripted.ts';
import {
  cut,
  cutInBody,
  flood,
  hints,
  silence,
  trickle,
  unfinished,
} from '../support/imitations/hostile-sockets.ts';
import { fullService } from '../support/imitations/honest.ts';

const PERSONS = '{ persons(first: 1) { items { id } } }';
const HTML = '<!doctype html><title>Sign in</title>';

test('a service that does not listen is UPSTREAM_UNREACHABLE', async () => {
  await using gateway = await startGatewayOverFake();
  await gateway.upstream[Symbol.asyncDispose]();
  const answer = await gateway.ask(PERSONS);
  expect(answer).toMatchObject(failed('UPSTREAM_UNREACHABLE'));
  expect(answer.errors![0]!.message).toBe(
    'The recruiting service cannot be reached (ECONNREFUSED). Try again later.',
  );
  expect(gateway.waits).toHaveLength(3);
});

test.each([
  '{ __typename me: viewer { company { id } } }',
  '{ kind: __typename me: viewer { company { id } } allVacancies(limit: 0) { id } }',
])('__typename of the root is answered without the service: %s', async (query) => {
  const schema = fullService().schema;
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: printSchema(schema) });
  await gateway.upstream[Symbol.asyncDispose]();
  const { data, errors } = await gateway.ask(query);
  expect(data).toMatchObject({ me: null });
  expect(Object.values(data)).toContain('Query');
  expect(errors).toMatchObject([{ path: ['me'], extensions: { code: 'UPSTREAM_UNREACHABLE' } }]);
});

test.each([
  ['before a byte of the answer', cut],
  ['in the middle of the answer', cutInBody],
])('a connection that breaks %s is UPSTREAM_UNREACHABLE', async (_when, reply) => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(reply);
  expect(await gateway.ask(PERSONS)).toMatchObject(failed('UPSTREAM_UNREACHABLE'));
  await expectWorking(gateway);
});

test.each([
  ['no answer', silence],
  ['headers, and a body that never ends', unfinished],
  ['a body that trickles for ever', trickle],
  ['early hints, and never more', hints],
])(
  '%s is UPSTREAM_TIMEOUT, is aborted at the service too, and is not sent again',
  async (_what, reply) => {
    await using gateway = await startGatewayOverFake({}, { config: { upstreamTimeoutMs: 1_000 } });
    gateway.upstream.answer(reply);
    const answer = await gateway.ask(PERSONS);
    expect(answer).toMatchObject(failed('UPSTREAM_TIMEOUT'));
    expect(answer.errors![0]!.message).toMatch(/did not answer within 1000 ms/);
    expect(gateway.upstream.received).toHaveLength(1);
    expect(await gateway.upstream.received[0]!.over).toBe('cut');
    await expectWorking(gateway);
  },
);

test.each<[string, Reply]>([
  ['HTML', text(HTML)],
  ['an empty body', text('')],
  ['204 without a body', text('', 204)],
  ['JSON that is cut off', text('{"data":{"persons"', 200, jsonType())],
  ['a list', json([])],
  ['a batch', json([{ data: { persons: null } }])],
  ['a string', json('x')],
  ['a number', json(1)],
  ['null', json(null)],
  ['an empty object', json({})],
  ['other JSON', json({ persons: [] })],
  ['data that is a number', json({ data: 5 })],
  ['data that is a list', json({ data: [] })],
  ['data that is a string', json({ data: 'x' })],
  ['errors that are a string', json({ errors: 'x' })],
  ['errors that are an object', json({ data: null, errors: { message: 'x' } })],
  ['an empty list of errors and no data', json({ errors: [] })],
  ['errors null and no data', json({ errors: null })],
  ['errors that are a number', json({ data: null, errors: 5 })],
  ['a redirect', text('', 302, { location: '/login' })],
  ['a permanent redirect with HTML', text(HTML, 308, { location: 'https://example.com/' })],
  ['404 with HTML', text(HTML, 404)],
  ['400 with JSON of another kind', json({ type: 'bad', detail: 'no' }, 400)],
  ['405', json({}, 405)],
])('an answer that is %s is UPSTREAM_BAD_RESPONSE at once', async (_what, reply) => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(reply);
  expect(await gateway.ask(PERSONS)).toMatchObject(failed('UPSTREAM_BAD_RESPONSE'));
  expect(gateway.upstream.received).toHaveLength(1);
  await expectWorking(gateway);
});

test.each<[string, TestGatewayOptions, string, object]>([
  ['by a plugin', { plugins: [{ onExecute() {} }] }, PERSONS, {}],
  [
    'beside a derived field, which is answered',
    {},
    '{ persons(first: 1) { items { id } } allPersons(limit: 0) { id } }',
    { path: ['persons'] },
  ],
])(
  'broken JSON that looks like data is UPSTREAM_BAD_RESPONSE where its values are read: %s',
  async (_who, options, query, where) => {
    await using gateway = await startGatewayOverFake(undefined, options);
    gateway.upstream.answer(text('{"data":{"persons":oops}}'));
    const { errors } = await gateway.ask(query);
    expect(errors).toMatchObject([{ ...where, extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }]);
    await expectWorking(gateway);
  },
);

test('a redirect is not followed, and the log says what to check', async () => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(text('', 307, { location: '/graphql' }), honest);
  const answer = await gateway.ask(PERSONS);
  expect(loggedFor(gateway.logged, answer)).toContain(
    'it is a redirect (307). Check RECRUITING_URL.',
  );
  expect(gateway.upstream.received).toHaveLength(1);
});

test.each([500, 502, 503, 504])('a %i that persists is UPSTREAM_BAD_RESPONSE', async (status) => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(text(HTML, status));
  const answer = await gateway.ask(PERSONS);
  expect(answer).toMatchObject(failed('UPSTREAM_BAD_RESPONSE'));
  expect(answer.errors![0]!.message).toContain(`status ${status}`);
  await expectWorking(gateway);
});

test('an answer larger than 8 MB is UPSTREAM_BAD_RESPONSE, and is not read to its end', async () => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(flood);
  const answer = await gateway.ask(PERSONS);
  expect(answer).toMatchObject(failed('UPSTREAM_BAD_RESPONSE'));
  expect(answer.errors![0]!.message).toContain(
    'larger than 8 MB. Request fewer records or fields at a time.',
  );
  const { over, connection } = gateway.upstream.received[0]!;
  expect(await over).toBe('cut');
  // What the service could send: the limit, and what is in buffers in between.
  expect(connection.bytesWritten).toBeLessThan(40 * 1024 * 1024);
  expect(gateway.upstream.received).toHaveLength(1);
  await expectWorking(gateway);
});

test.each(['gzip', 'br', 'GZIP', 'deflate, gzip', 'x-unknown'])(
  'an answer that is compressed (%s) without permission is UPSTREAM_BAD_RESPONSE, and is not decompressed',
  async (coding) => {
    await using gateway = await startGatewayOverFake();
    const bomb = gzipSync(Buffer.alloc(80 * 1024 * 1024, ' '));
    gateway.upstream.answer((response) => {
      response.writeHead(200, { ...jsonType(), 'content-encoding': coding }).end(bomb);
    });
    const answer = await gateway.ask(PERSONS);
    expect(answer).toMatchObject(failed('UPSTREAM_BAD_RESPONSE'));
    expect(loggedFor(gateway.logged, answer)).toMatch(
      /compressed.*Turn off compression in the proxy/,
    );
    expect(gateway.upstream.received[0]!.headers['accept-encoding']).toBe('identity');
    expect(gateway.upstream.received).toHaveLength(1);
    await expectWorking(gateway);
  },
);

test('a gateway that closes ends the queries in flight at once, and sends none of them again', async () => {
  await using gateway = await startGatewayOverFake({}, { config: { upstreamConcurrency: 2 } });
  gateway.upstream.answer(silence, unfinished, honest);
  const answers = [1, 2, 3].map((first) =>
    gateway.ask(`{ persons(first: ${first}) { items { id } } }`),
  );
  await gateway.upstream.arrived(2);
  await gateway.gateway.close();
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatchObject(failed('UPSTREAM_UNREACHABLE'));
    expect(answer.errors![0]!.message).toBe('The gateway is stopping. Send the request again.');
  }
  expect(gateway.upstream.received).toHaveLength(2);
  // The time that plugins have to end, and no wait before another attempt.
  expect(gateway.waits).toEqual([5_000]);
});

test('a failure of one root field does not affect the other fields of the operation', async () => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(text(HTML), honest);
  const { data, errors } = await gateway.ask<Record<string, unknown>>(
    '{ allPersons(limit: 1) { id } all: allPersons(limit: 2) { id } }',
  );
  expect([data['allPersons'], data['all']].filter((list) => list === null)).toHaveLength(1);
  expect(errors).toHaveLength(1);
});

test('neither addresses, tokens nor text of a broken answer reach the caller; neither tokens nor answers reach the log', async () => {
  await using gateway = await startGatewayOverFake({}, { config: { upstreamTimeoutMs: 200 } });
  const marked = { authorization: 'Bearer of-the-service', 'set-cookie': 'a=of-the-service' };
  const replies: Reply[] = [
    cut,
    cutInBody,
    silence,
    trickle,
    text('of-the-service'),
    text('{"data": of-the-service'),
    json('of-the-service'),
    json(['of-the-service']),
    json({ data: 'of-the-service' }),
    json({ errors: 'of-the-service' }),
    text('of-the-service', 302, { location: 'https://of-the-service.example/' }),
    text('of-the-service', 500, marked),
    json({ message: 'of-the-service' }, 404, marked),
    json({ message: 'of-the-service' }, 429, { 'retry-after': 'of-the-service' }),
    refusal('of-the-service'),
    refusal('of-the-service', 403),
  ];
  const pages: Reply[] = [
    json({ data: { persons: 'of-the-service' } }),
    json({ data: { persons: { items: 'of-the-service', pageInfo: null } } }),
    json({ data: { persons: { items: [], pageInfo: { hasNextPage: 'of-the-service' } } } }),
  ];
  const answers: string[] = [];
  for (const [query, reply] of [
    ...replies.map((each) => [PERSONS, each] as const),
    ...pages.map((each) => ['{ allPersons { id } }', each] as const),
  ]) {
    gateway.upstream.answer(reply);
    const response = await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    answers.push(JSON.stringify([...response.headers]), await response.text());
  }
  await gateway.upstream[Symbol.asyncDispose]();
  answers.push(JSON.stringify(await gateway.ask(PERSONS)));

  const allAnswers = answers.join('\n');
  const written = JSON.stringify(gateway.logged);
  const { host, port } = new URL(gateway.upstream.url);
  const { pair } = (await gateway.store.read()).state!;
  expect(answers.filter((answer) => answer.includes('"code":"UPSTREAM_'))).toHaveLength(
    replies.length + pages.length + 1,
  );
  for (const secret of [pair.accessToken, pair.refreshToken]) {
    expect(allAnswers).not.toContain(secret);
    expect(written).not.toContain(secret);
  }
  expect(allAnswers).not.toContain(host);
  expect(allAnswers).not.toContain(port);
  expect(allAnswers).not.toContain('of-the-service');
  expect(written).not.toContain('of-the-service');
  expect(allAnswers).not.toMatch(/\bat .*\.ts:\d+/);
});

function failed(code: string) {
  return { errors: [{ path: ['persons'], extensions: { code } }] };
}

async function expectWorking(gateway: GatewayOverFake): Promise<void> {
  gateway.upstream.answer(honest);
  const { data, errors } = await gateway.ask<{ persons: { items: unknown[] } }>(PERSONS);
  expect(errors).toBeUndefined();
  expect(data.persons.items).toHaveLength(1);
}

function jsonType() {
  return { 'content-type': 'application/json' };
}
