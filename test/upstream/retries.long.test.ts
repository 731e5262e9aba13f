import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { impatientClock, startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest, json, refusal, text, type Reply } from '../support/imitations/scripted.ts';
import { cut, cutInBody, silence, unfinished } from '../support/imitations/hostile-sockets.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

const PERSONS = '{ persons(first: 1) { items { id } } }';
const RENAME = 'mutation { rename(id: 1, name: "Ada") { id name } }';
const DATA = { data: { persons: { items: [{ id: expect.any(String) }] } } };

const THROTTLED = { message: 'No.', extensions: { code: 'THROTTLED' } };

const passing: [string, Reply][] = [
  ['a connection that breaks', cut],
  ['a connection that breaks in the middle of the answer', cutInBody],
  ['429', json({}, 429)],
  ['429 with an HTML body', text('slow down', 429)],
  ['a limited rate as an error of GraphQL', json({ data: null, errors: [THROTTLED] })],
  ['500', text('', 500)],
  ['502', text('<html>', 502)],
  ['503 with JSON', json({ error: 'busy' }, 503)],
  ['504', text('', 504)],
];

test.each(passing)('a query is sent again after %s', async (_what, reply) => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(reply, honest);
  expect(await gateway.ask(PERSONS)).toEqual(DATA);
  const [first, second] = gateway.upstream.received;
  expect(gateway.upstream.received).toHaveLength(2);
  expect(second!.body).toBe(first!.body);
});

test.each(passing)(
  'a query is sent at most four times, with growing waits between: %s',
  async (_what, reply) => {
    await using gateway = await startGatewayOverFake();
    gateway.upstream.answer(reply);
    expect((await gateway.ask(PERSONS)).errors).toHaveLength(1);
    expect(gateway.upstream.received).toHaveLength(4);
    expectBackoff(gateway.waits);
  },
);

test('each page of a drain is sent again by itself', async () => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(honest, cut, honest, text('', 503), cutInBody, honest);
  const { data, errors } = await gateway.ask<{ allPersons: { id: string }[] }>(
    '{ allPersons { id } }',
  );
  expect(errors).toBeUndefined();
  expect(data.allPersons.map(({ id }) => id)).toEqual(
    gateway.upstream.sandbox.persons.all().map(({ id }) => id),
  );
  expect(gateway.upstream.received).toHaveLength(6);
});

test.each(passing)('a mutation is never sent again: %s', async (_what, reply) => {
  await using gateway = await startRich();
  gateway.upstream.answer(reply);
  const { errors } = await gateway.ask(RENAME);
  expect(errors).toMatchObject([
    { path: ['rename'], extensions: { code: expect.stringMatching(/^UPSTREAM_/) } },
  ]);
  expect(gateway.upstream.received).toHaveLength(1);
  expect(gateway.waits).toEqual([]);
});

test('a mutation that was executed, but whose answer was lost, is not executed twice', async () => {
  const { schema, sent } = fullService();
  await using gateway = await startRich(schema);
  gateway.upstream.answer(async (response, { headers, body }, { url }) => {
    const { authorization = '' } = headers;
    const type = { authorization, 'content-type': 'application/json' };
    await (await fetch(`${url}/graphql`, { method: 'POST', headers: type, body })).text();
    response.destroy();
  });
  const { errors } = await gateway.ask(RENAME);
  expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_UNREACHABLE' } }]);
  expect(sent.renames).toBe(1);
});

test.each([
  ['no answer in time', silence],
  ['half an answer in time', unfinished],
  ['no GraphQL', text('<html>')],
  ['404', text('', 404)],
  ['a redirect', text('', 302, { location: '/' })],
  ['a refused token', refusal('blocked')],
  ['403', refusal('forbidden', 403)],
  ['an error of GraphQL', json({ errors: [{ message: 'No.' }] })],
])('a query is not sent again after a permanent failure: %s', async (_what, reply) => {
  await using gateway = await startGatewayOverFake({}, { config: { upstreamTimeoutMs: 200 } });
  gateway.upstream.answer(reply);
  expect((await gateway.ask(PERSONS)).errors).toHaveLength(1);
  expect(gateway.upstream.received).toHaveLength(1);
  expect(gateway.waits).toEqual([]);
});

test.each([
  ['seconds', '2', 2000],
  ['ten seconds, the longest', '10', 10_000],
  ['a date', () => new Date(Date.now() + 8000).toUTCString(), 6000],
])('a short Retry-After is obeyed: %s', async (_form, header, atLeast) => {
  await using gateway = await startGatewayOverFake();
  const value = typeof header === 'string' ? header : header();
  gateway.upstream.answer(json({}, 429, { 'retry-after': value }), honest);
  expect(await gateway.ask(PERSONS)).toEqual(DATA);
  expect(gateway.waits).toHaveLength(1);
  expect(gateway.waits[0]).toBeGreaterThanOrEqual(atLeast);
  expect(gateway.waits[0]).toBeLessThanOrEqual(10_000);
});

test('no attempt begins later than 30 s after the first, however long the random part of a wait', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.99);
  onTestFinished(() => void vi.restoreAllMocks());
  const waits: number[] = [];
  const waited = () => waits.reduce((sum, wait) => sum + wait, 0);
  const clock = { ...impatientClock(waits), elapsed: () => systemClock.elapsed() + waited() };
  await using gateway = await startGatewayOverFake({}, { clock });
  gateway.upstream.answer(json({}, 429, { 'retry-after': '7' }));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_RATE_LIMITED' } }]);
  expect(waited()).toBeGreaterThan(14_000);
  expect(waited()).toBeLessThanOrEqual(30_000);
});

test.each([
  ['none', undefined, null],
  ['zero', '0', 1],
  ['nonsense', 'when I like', null],
  ['nonsense with a year in it', 'see you in 2050', null],
  ['a negative number', '-5', null],
  ['a fraction', '1.5', null],
  ['a date that has passed', 'Thu, 01 Jan 1970 00:00:00 GMT', 1],
  ['nothing', '', null],
])('without a valid Retry-After, the usual waits apply: %s', async (_form, value, retryAfter) => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(json({}, 429, value === undefined ? {} : { 'retry-after': value }));
  const { errors } = await gateway.ask(PERSONS);
  const words = retryAfter === null ? 'Try again later.' : 'Try again in 1 s.';
  expect(errors).toMatchObject([
    {
      message: expect.stringContaining(words),
      path: ['persons'],
      extensions: { code: 'UPSTREAM_RATE_LIMITED', retryAfter },
    },
  ]);
  expect(gateway.upstream.received).toHaveLength(4);
  expectBackoff(gateway.waits);
});

test.each([
  ['seconds', '11', 11, 11],
  ['many seconds', '86400', 86_400, 86_400],
  ['a date', () => new Date(Date.now() + 3_600_000).toUTCString(), 3500, 3600],
])(
  'a long Retry-After is reported to the caller at once: %s',
  async (_form, header, least, most) => {
    await using gateway = await startGatewayOverFake();
    const value = typeof header === 'string' ? header : header();
    gateway.upstream.answer(json({}, 429, { 'retry-after': value }), honest);
    const { errors } = await gateway.ask(PERSONS);
    expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_RATE_LIMITED' } }]);
    const retryAfter = errors![0]!.extensions['retryAfter'];
    expect(retryAfter).toBeGreaterThanOrEqual(least);
    expect(retryAfter).toBeLessThanOrEqual(most);
    expect(gateway.upstream.received).toHaveLength(1);
    expect(gateway.waits).toEqual([]);
  },
);

const limits: [string, object, number | null][] = [
  ['THROTTL in its code', { extensions: { code: 'REQUEST_THROTTLED' } }, null],
  ['RATE_LIMIT in its code, in lower case', { extensions: { code: 'rate_limited' } }, null],
  ['TOO_MANY in its code', { extensions: { code: 'TOO_MANY_REQUESTS' } }, null],
  ['RATE_LIMIT in a type outside of its extensions', { type: 'RATE_LIMITED' }, null],
  ['status 429', { extensions: { http: { status: 429 } } }, null],
  ['a retry time', { extensions: { code: 'BUSY', retryAfter: 11 } }, 11],
  ['a retry time as a header has it', { extensions: { retry_after: '12' } }, 12],
  ['a code beside its extensions', { code: 'THROTTLED', extensions: { code: 'OTHER' } }, null],
];

test.each(limits)(
  'an error of GraphQL with %s is UPSTREAM_RATE_LIMITED at last',
  async (_what, facts, retryAfter) => {
    await using gateway = await startGatewayOverFake();
    gateway.upstream.answer(json({ errors: [{ message: 'Slow down.', ...facts }] }));
    const { errors } = await gateway.ask(PERSONS);
    const extensions = { code: 'UPSTREAM_RATE_LIMITED', retryAfter };
    expect(errors).toMatchObject([{ path: ['persons'], extensions }]);
    expect(gateway.upstream.received).toHaveLength(retryAfter === null ? 4 : 1);
  },
);

test.each([
  ['a message about a limit', { message: 'Rate limit exceeded (429): THROTTLED' }],
  ['another code', { message: 'No.', extensions: { code: 'NOT_FOUND', status: 404 } }],
])('an error of GraphQL with %s is passed on at once', async (_what, error) => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(json({ errors: [error] }));
  expect((await gateway.ask(PERSONS)).errors).toMatchObject([error]);
  expect(gateway.upstream.received).toHaveLength(1);
});

test('the fields beside one that was limited are not lost with it', async () => {
  await using gateway = await startRich();
  const error = { ...THROTTLED, path: ['other'] };
  gateway.upstream.answer(
    json({ data: { rename: { id: 1, name: 'Ada' }, other: null }, errors: [error] }),
  );
  const query = `${RENAME.slice(0, -1)} other: rename(id: 2, name: "B") { id } }`;
  expect(await gateway.ask(query)).toMatchObject({
    data: { rename: { id: 1, name: 'Ada' } },
    errors: [error],
  });
  expect(gateway.upstream.received).toHaveLength(1);
});

test.each([
  ['of null', { data: { rename: null }, errors: [{ ...THROTTLED, path: ['rename'] }] }],
  ['below its field', { data: null, errors: [{ ...THROTTLED, path: ['rename', 'name'] }] }],
])(
  'a mutation that may have been executed is not called limited: its own answer %s',
  async (_what, answer) => {
    await using gateway = await startRich();
    gateway.upstream.answer(json(answer));
    expect((await gateway.ask(RENAME)).errors).toMatchObject(answer.errors);
    expect(gateway.upstream.received).toHaveLength(1);
  },
);

test('a pause that a 503 asks for is made before the query is sent again', async () => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(text('', 503, { 'retry-after': '5' }), honest);
  expect(await gateway.ask(PERSONS)).toEqual(DATA);
  expect(gateway.waits).toHaveLength(1);
  expect(gateway.waits[0]).toBeGreaterThanOrEqual(5_000);
});

test('a service that limits the rate of requests is waited for, and drains are whole', async () => {
  // A bucket of 4 requests, which refills by one each 150 ms.
  // The waits are part of the promise here, so the clock is real.
  await using gateway = await startGatewayOverFake({ persons: 500 }, { clock: systemClock });
  let tokens = 4;
  let refilledAt = performance.now();
  let refusals = 0;
  gateway.upstream.answer((...exchange) => {
    const refilled = Math.floor((performance.now() - refilledAt) / 150);
    refilledAt += refilled * 150;
    tokens = Math.min(4, tokens + refilled);
    if (tokens > 0) {
      tokens -= 1;
      return honest(...exchange);
    }
    refusals += 1;
    return json({ errors: [THROTTLED] })(...exchange);
  });
  const ids = gateway.upstream.sandbox.persons.all().map(({ id }) => id);
  // The second time, pages are requested in parallel.
  for (const _time of [1, 2]) {
    const { data, errors } = await gateway.ask<{ allPersons: { id: string }[] }>(
      '{ allPersons { id } }',
    );
    expect(errors).toBeUndefined();
    expect(data.allPersons.map(({ id }) => id)).toEqual(ids);
  }
  expect(refusals).toBeGreaterThan(0);
});

test('a mutation that is rate-limited tells the caller when to send it again', async () => {
  await using gateway = await startRich();
  gateway.upstream.answer(json({}, 429, { 'retry-after': '2' }));
  const { errors } = await gateway.ask(RENAME);
  expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_RATE_LIMITED', retryAfter: 2 } }]);
  expect(gateway.upstream.received).toHaveLength(1);
});

test('a query that waits to be sent again does not occupy a slot', async () => {
  const woken = Promise.withResolvers<void>();
  const asleep = Promise.withResolvers<void>();
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => {
      if (ms >= 15_000) return systemClock.sleep(ms, signal);
      asleep.resolve();
      return woken.promise;
    },
  };
  await using gateway = await startGatewayOverFake(
    {},
    { clock, config: { upstreamConcurrency: 1 } },
  );
  gateway.upstream.answer(text('', 503), honest);
  const waiting = gateway.ask(PERSONS);
  await asleep.promise;
  expect(await gateway.ask('{ persons(first: 1) { items { firstName } } }')).toMatchObject({
    data: { persons: { items: [{}] } },
  });
  woken.resolve();
  expect(await waiting).toEqual(DATA);
});

function startRich(schema = fullService().schema) {
  return startGatewayOverFake({ schema }, { snapshot: fullSdl, config: { mutations: 'all' } });
}

/** Each wait is twice the one before, plus a random part of up to half of it. */
function expectBackoff(waits: readonly number[]): void {
  expect(waits).toHaveLength(3);
  waits.forEach((wait, index) => {
    expect(wait).toBeGreaterThanOrEqual(100 * 2 ** index);
    expect(wait).toBeLessThanOrEqual(150 * 2 ** index);
  });
}
