import { gzipSync } from 'node:zlib';
import { printSchema } from 'graphql';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { impatientClock, startGatewayOverService } from '../support/gateway/over-service.ts';
import type { Reply } from '../service/service.ts';
import { fullSdl, fullService } from '../service/full.ts';
import {
  cut,
  cutInBody,
  flood,
  hints,
  honest,
  json,
  refusal,
  silence,
  text,
  trickle,
  unfinished,
} from '../service/replies.ts';

const PERSONS = '{ persons(first: 1) { items { id } } }';
const DATA = { data: { persons: { items: [{ id: expect.any(String) }] } } };
const CANDIDATE = '{ candidate(id: 1) { id } }';
const RENAME = 'mutation { rename(id: 1, name: "Ada") { id name } }';
const HTML = '<!doctype html><title>Sign in</title>';
const JSON_TYPE = { 'content-type': 'application/json' };
const GZIP = { 'content-encoding': 'gzip' };
const THROTTLED = { message: 'No.', extensions: { code: 'THROTTLED' } };

/**
 * What the service does, the code of it, how often a query is sent, and what the log says: of a fault that may pass,
 * the message to the caller.
 */
const faults: [string, Reply, code: string, sent: 1 | 4, words?: RegExp][] = [
  ['a connection that breaks', cut, 'UNREACHABLE', 4],
  ['a connection that breaks in the middle of the answer', cutInBody, 'UNREACHABLE', 4],

  ['429', json({}, 429), 'RATE_LIMITED', 4],
  ['429 with an HTML body', text('slow down', 429), 'RATE_LIMITED', 4],
  ['a limited rate as an error', json({ data: null, errors: [THROTTLED] }), 'RATE_LIMITED', 4],

  [
    'a limited rate as an error, with a long Retry-After',
    json({ data: null, errors: [THROTTLED] }, 200, { 'retry-after': '60' }),
    'RATE_LIMITED',
    1,
  ],
  ['429 that is compressed', text('', 429, GZIP), 'RATE_LIMITED', 4],

  ['503 that is compressed', text('', 503, GZIP), 'BAD_RESPONSE', 4, /status 503/],
  ['500', text('', 500), 'BAD_RESPONSE', 4, /status 500/],
  ['502 with HTML', text(HTML, 502), 'BAD_RESPONSE', 4, /status 502/],
  ['503 with JSON', json({ error: 'busy' }, 503), 'BAD_RESPONSE', 4, /status 503/],
  ['504', text('', 504), 'BAD_RESPONSE', 4, /status 504/],

  ['no answer', silence, 'TIMEOUT', 1],
  ['headers, and a body that never ends', unfinished, 'TIMEOUT', 1],
  ['a body that trickles for ever', trickle, 'TIMEOUT', 1],
  ['early hints, and never more', hints, 'TIMEOUT', 1],

  ['HTML', text(HTML), 'BAD_RESPONSE', 1],
  ['an empty body', text(''), 'BAD_RESPONSE', 1],
  ['204 without a body', text('', 204), 'BAD_RESPONSE', 1],
  ['JSON that is cut off', text('{"data":{"candidate"', 200, JSON_TYPE), 'BAD_RESPONSE', 1],
  ['a batch', json([{ data: { candidate: null } }]), 'BAD_RESPONSE', 1],
  ['a string', json('x'), 'BAD_RESPONSE', 1],
  ['null', json(null), 'BAD_RESPONSE', 1],
  ['other JSON', json({ candidate: {} }), 'BAD_RESPONSE', 1],
  ['data that is a list', json({ data: [] }), 'BAD_RESPONSE', 1],
  ['data that is a string', json({ data: 'x' }), 'BAD_RESPONSE', 1],
  ['errors that are an object', json({ data: null, errors: { a: 1 } }), 'BAD_RESPONSE', 1],
  ['an empty list of errors and no data', json({ errors: [] }), 'BAD_RESPONSE', 1],
  [
    'a redirect',
    text('', 307, { location: '/' }),
    'BAD_RESPONSE',
    1,
    /\(307\)\. Check RECRUITING_URL/,
  ],
  ['404 with HTML', text(HTML, 404), 'BAD_RESPONSE', 1],
  ['400 with JSON of another kind', json({ type: 'bad', detail: 'no' }, 400), 'BAD_RESPONSE', 1],
  ['gzip without permission', compressed('gzip'), 'BAD_RESPONSE', 1, /compressed.*Turn off comp/],
  ['an unknown coding', compressed('x-unknown'), 'BAD_RESPONSE', 1, /compressed.*Turn off comp/],

  ['401 token_revoked', refusal('token_revoked'), 'UNAUTHORIZED', 1, /administrator/],
  ['401 with another body', json({ message: 'no' }, 401), 'UNAUTHORIZED', 1, /administrator/],
  ['401 with a list', json(['token_expired'], 401), 'UNAUTHORIZED', 1, /administrator/],
  ['401 with an empty body', json('', 401), 'UNAUTHORIZED', 1, /administrator/],
  ['403 that says token_expired', refusal('token_expired', 403), 'UNAUTHORIZED', 1, /administ/],
  ['403 with errors', json({ errors: [{ message: 'No.' }] }, 403), 'UNAUTHORIZED', 1, /administ/],
];

test.each(faults)(
  'an answer that is %s has a code; a query is sent again if that can help, a mutation never; then all works again',
  async (_what, reply, what, sent, words) => {
    await using gateway = await startRich({ upstreamTimeoutMs: what === 'TIMEOUT' ? 300 : 30_000 });
    const { service, waits } = gateway;
    const code = `UPSTREAM_${what}`;
    // The service has accepted the token.
    const found = { data: { candidate: { id: 1 } } };
    expect(await gateway.ask(CANDIDATE)).toEqual(found);
    const exchanges = service.exchanges.length;
    service.answer(reply);
    const answer = await gateway.ask(CANDIDATE);
    expect(answer).toMatchObject({ errors: [{ path: ['candidate'], extensions: { code } }] });
    expect(service.received).toHaveLength(1 + sent);
    expect(waits).toHaveLength(sent - 1);
    // Each wait is twice the one before, and a random part of up to half of it.
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(100 * 2 ** index);
      expect(wait).toBeLessThanOrEqual(150 * 2 ** index);
    }
    if (words) {
      const { message } = answer.errors![0]!;
      expect(sent > 1 ? message : loggedFor(gateway.logged, answer)).toMatch(words);
    }
    if (what === 'TIMEOUT') {
      expect(answer.errors![0]!.message).toMatch(/did not answer within 300 ms/);
      expect(await service.received[1]!.over).toBe('cut');
    }

    const { errors } = await gateway.ask(RENAME);
    expect(errors).toMatchObject([{ path: ['rename'], extensions: { code } }]);
    expect(service.received).toHaveLength(2 + sent);

    service.answer(reply, honest);
    if (sent === 1) expect((await gateway.ask(CANDIDATE)).errors).toHaveLength(1);
    expect(await gateway.ask(CANDIDATE)).toEqual(found);
    const [before, last] = service.received.slice(-2);
    expect(last!.body).toBe(before!.body);
    expect(service.received).toHaveLength(4 + sent);
    expect(service.exchanges).toHaveLength(exchanges);
  },
);

/** A bomb, which must not be unpacked. */
function compressed(coding: string): Reply {
  const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024, ' '));
  return (response, { headers }) => {
    expect(headers['accept-encoding']).toBe('identity');
    response.writeHead(200, { ...JSON_TYPE, 'content-encoding': coding }).end(bomb);
  };
}

test('a service that does not listen is UPSTREAM_UNREACHABLE', async () => {
  await using gateway = await startGatewayOverService();
  await gateway.service[Symbol.asyncDispose]();
  const answer = await gateway.ask(PERSONS);
  expect(answer).toMatchObject(failed('UPSTREAM_UNREACHABLE'));
  expect(answer.errors![0]!.message).toBe(
    'The recruiting service cannot be reached (ECONNREFUSED). Try again later.',
  );
  expect(gateway.waits).toHaveLength(3);
});

test('__typename of the root is answered without the service', async () => {
  const schema = fullService().schema;
  await using gateway = await startGatewayOverService(
    { schema },
    { snapshot: printSchema(schema) },
  );
  await gateway.service[Symbol.asyncDispose]();
  const query = '{ kind: __typename me: viewer { company { id } } allVacancies(limit: 0) { id } }';
  const { data, errors } = await gateway.ask(query);
  expect(data).toMatchObject({ kind: 'Query', me: null });
  expect(errors).toMatchObject([{ path: ['me'], extensions: { code: 'UPSTREAM_UNREACHABLE' } }]);
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
    await using gateway = await startGatewayOverService(undefined, options);
    gateway.service.answer(text('{"data":{"persons":oops}}'));
    const { errors } = await gateway.ask(query);
    expect(errors).toMatchObject([{ ...where, extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }]);
  },
);

test('an answer larger than 8 MB is UPSTREAM_BAD_RESPONSE, and is not read to its end', async () => {
  await using gateway = await startGatewayOverService();
  gateway.service.answer(flood);
  const answer = await gateway.ask(PERSONS);
  expect(answer).toMatchObject(failed('UPSTREAM_BAD_RESPONSE'));
  expect(answer.errors![0]!.message).toContain(
    'larger than 8 MB. Request fewer records or fields at a time.',
  );
  const { over, connection } = gateway.service.received[0]!;
  expect(await over).toBe('cut');
  // What the service could send: the limit, and what is in buffers in between.
  expect(connection.bytesWritten).toBeLessThan(40 * 1024 * 1024);
  expect(gateway.service.received).toHaveLength(1);
});

test('a gateway that closes ends the queries in flight at once, and sends none of them again', async () => {
  await using gateway = await startGatewayOverService({}, { config: { upstreamConcurrency: 2 } });
  gateway.service.answer(silence, unfinished, honest);
  const answers = [1, 2, 3].map((first) =>
    gateway.ask(`{ persons(first: ${first}) { items { id } } }`),
  );
  await gateway.service.arrived(2);
  await gateway.gateway.close();
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatchObject(failed('UPSTREAM_UNREACHABLE'));
    expect(answer.errors![0]!.message).toBe('The gateway is stopping. Send the request again.');
  }
  expect(gateway.service.received).toHaveLength(2);
  // The time that plugins have to end, and no wait before another attempt.
  expect(gateway.waits).toEqual([5_000]);
});

test('each page of a drain is sent again by itself', async () => {
  await using gateway = await startGatewayOverService();
  gateway.service.answer(honest, cut, honest, text('', 503), cutInBody, honest);
  const { data, errors } = await gateway.ask<{ allPersons: { id: string }[] }>(
    '{ allPersons { id } }',
  );
  expect(errors).toBeUndefined();
  expect(data.allPersons.map(({ id }) => id)).toEqual(
    gateway.service.persons.all().map(({ id }) => id),
  );
  expect(gateway.service.received).toHaveLength(6);
});

const inMs = (ms: number) => () => new Date(Date.now() + ms).toUTCString();

/** A header, how often a query is sent, and the seconds that it waits or that its caller is told to wait. */
test.each<
  [string, string | (() => string), 2 | 4 | 1, [least: number, most: number] | null, status?: 503]
>([
  ['two seconds', '2', 2, [2, 10]],
  ['ten seconds, the longest wait', '10', 2, [10, 10]],
  ['a date', inMs(8_000), 2, [6, 10]],
  ['seconds beside 503', '5', 2, [5, 10], 503],
  ['zero', '0', 4, [1, 1]],
  ['a date that has passed', 'Thu, 01 Jan 1970 00:00:00 GMT', 4, [1, 1]],
  ['nonsense with a year in it', 'see you in 2050', 4, null],
  ['a negative number', '-5', 4, null],
  ['a fraction', '1.5', 4, null],
  ['many seconds', '86400', 1, [86_400, 86_400]],
  ['a date in an hour', inMs(3_600_000), 1, [3_500, 3_600]],
])(
  'a short Retry-After is obeyed, and a long one is reported without a wait: %s',
  async (_form, header, sent, range, status) => {
    await using gateway = await startGatewayOverService();
    const value = typeof header === 'string' ? header : header();
    const limited = json({}, status ?? 429, { 'retry-after': value });
    gateway.service.answer(limited, sent === 2 ? honest : limited);
    const answer = await gateway.ask(PERSONS);
    expect(gateway.service.received).toHaveLength(sent);
    const [error] = answer.errors ?? [];
    if (sent === 2) expect(answer).toEqual(DATA);
    else expect(error!.extensions['code']).toBe('UPSTREAM_RATE_LIMITED');
    if (sent === 4) {
      expect(error!.message).toContain(range ? 'Try again in 1 s.' : 'Try again later.');
    }
    const seconds = sent === 2 ? gateway.waits[0]! / 1_000 : error!.extensions['retryAfter'];
    if (!range) return expect(seconds).toBeNull();
    expect(seconds).toBeGreaterThanOrEqual(range[0]);
    expect(seconds).toBeLessThanOrEqual(range[1]);
  },
);

test('no attempt begins later than 30 s after the first, however long the random part of a wait', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.99);
  onTestFinished(() => void vi.restoreAllMocks());
  const waits: number[] = [];
  const waited = () => waits.reduce((sum, wait) => sum + wait, 0);
  const clock = { ...impatientClock(waits), elapsed: () => systemClock.elapsed() + waited() };
  await using gateway = await startGatewayOverService({}, { clock });
  gateway.service.answer(json({}, 429, { 'retry-after': '7' }));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_RATE_LIMITED' } }]);
  expect(waited()).toBeGreaterThan(14_000);
  expect(waited()).toBeLessThanOrEqual(30_000);
});

test('an answer whose encoding is "identity" is not compressed', async () => {
  await using gateway = await startGatewayOverService();
  const page = { data: { persons: { items: [{ id: '1' }] } } };
  gateway.service.answer(json(page, 200, { 'content-encoding': 'identity' }));
  expect(await gateway.ask(PERSONS)).toEqual(page);
});

/** One error or several, how often a query is sent, and the seconds that its caller is told to wait. */
test.each<[string, object | object[], 1 | 4, number | null | 'passed on']>([
  ['THROTTL in its code', { extensions: { code: 'REQUEST_THROTTLED' } }, 4, null],
  ['RATE_LIMIT in its code, in lower case', { extensions: { code: 'rate_limited' } }, 4, null],
  ['TOO_MANY in its code', { extensions: { code: 'TOO_MANY_REQUESTS' } }, 4, null],
  ['RATE_LIMIT in a type outside of its extensions', { type: 'RATE_LIMITED' }, 4, null],
  ['status 429', { extensions: { http: { status: 429 } } }, 4, null],
  ['status 429 beside its extensions', { status: 429 }, 4, null],
  ['status 429 as a text', { extensions: { statusCode: '429' } }, 4, null],
  ['429 as its code', { extensions: { code: 429 } }, 4, null],
  [
    'retry times, of which the longest counts',
    { retryAfter: 11, extensions: { retryAfter: 3 } },
    1,
    11,
  ],
  ['a retry time as a header has it', { extensions: { retry_after: '12' } }, 1, 12],
  ['a retry time beside its extensions', { 'retry-after': 13 }, 1, 13],
  ['the longest of several retry times', [{ retryAfter: 14 }, { retryAfter: 11 }], 1, 14],
  ['a limited rate in the second of its errors', [{}, { type: 'THROTTLED' }], 4, null],
  ['a negative retry time', { extensions: { retryAfter: -1 } }, 1, 'passed on'],
  ['a code beside its extensions', { code: 'THROTTLED', extensions: { code: 'OTHER' } }, 4, null],
  ['only a message about it', { message: 'Rate limit exceeded (429)' }, 1, 'passed on'],
  ['another code', { extensions: { code: 'NOT_FOUND', status: 404 } }, 1, 'passed on'],
])('an error of GraphQL is a limited rate or passed on: %s', async (_what, facts, sent, result) => {
  await using gateway = await startGatewayOverService();
  const all = [facts].flat().map((each) => ({ message: 'Slow down.', ...each }));
  gateway.service.answer(json({ errors: all }));
  const { errors } = await gateway.ask(PERSONS);
  const extensions = { code: 'UPSTREAM_RATE_LIMITED', retryAfter: result };
  expect(errors).toMatchObject(result === 'passed on' ? all : [{ path: ['persons'], extensions }]);
  expect(gateway.service.received).toHaveLength(sent);
});

test.each<[string, Reply, object]>([
  [
    'a field beside it keeps its value',
    json({
      data: { rename: { id: 1, name: 'Ada' }, other: null },
      errors: [{ ...THROTTLED, path: ['other'] }],
    }),
    { data: { rename: { name: 'Ada' } }, errors: [{ ...THROTTLED, path: ['other'] }] },
  ],
  [
    'its own field of null may have been executed',
    json({ data: { rename: null }, errors: [{ ...THROTTLED, path: ['rename'] }] }),
    { errors: [THROTTLED] },
  ],
  [
    'an error at its field, without data, says that it was not executed',
    json({ errors: [{ ...THROTTLED, path: ['rename'] }] }),
    { errors: [{ extensions: { code: 'UPSTREAM_RATE_LIMITED' } }] },
  ],
  [
    'an error below its field may come after it was executed',
    json({ data: null, errors: [{ ...THROTTLED, path: ['rename', 'name'] }] }),
    { errors: [THROTTLED] },
  ],
  [
    'its caller is told when to send it again',
    json({}, 429, { 'retry-after': '2' }),
    { errors: [{ extensions: { code: 'UPSTREAM_RATE_LIMITED', retryAfter: 2 } }] },
  ],
])('a mutation whose rate is limited is not sent again: %s', async (_what, reply, expected) => {
  await using gateway = await startRich();
  gateway.service.answer(reply);
  const query = `${RENAME.slice(0, -1)} other: rename(id: 2, name: "B") { id } }`;
  expect(await gateway.ask(query)).toMatchObject(expected);
  expect(gateway.service.received).toHaveLength(1);
});

const PARTLY = json({
  data: { candidate: { id: 1 }, other: null },
  errors: [{ ...THROTTLED, path: ['other'] }],
});

test.each<[string, [Reply, ...Reply[]]]>([
  ['each time', [PARTLY]],
  ['and the service goes down', [PARTLY, text('', 503)]],
])('a field beside one whose rate is limited keeps its value: %s', async (_what, replies) => {
  await using gateway = await startRich();
  gateway.service.answer(...replies);
  expect(await gateway.ask('{ candidate(id: 1) { id } other: candidate(id: 2) { id } }')).toEqual({
    data: { candidate: { id: 1 }, other: null },
    errors: [expect.objectContaining({ ...THROTTLED, path: ['other'] })],
  });
  expect(gateway.service.received).toHaveLength(4);
});

test.each<[string, other: Reply, answer: object]>([
  ['another is sent meanwhile, and it is sent again', honest, DATA],
  [
    'if it finds no turn, its caller gets the error of its attempt',
    silence,
    { errors: [{ message: expect.stringContaining('status 503') }] },
  ],
])(
  'a query that waits to be sent again does not occupy a slot: %s',
  async (_what, other, answer) => {
    const woken = Promise.withResolvers<void>();
    const asleep = Promise.withResolvers<void>();
    let passed = 0;
    const clock = {
      ...systemClock,
      elapsed: () => systemClock.elapsed() + passed,
      sleep: (ms: number, signal?: AbortSignal) => {
        if (ms >= 15_000) return systemClock.sleep(ms, signal);
        asleep.resolve();
        return woken.promise;
      },
    };
    await using gateway = await startGatewayOverService(
      {},
      { clock, config: { upstreamConcurrency: 1 } },
    );
    gateway.service.answer(text('', 503), other, honest);
    const waiting = gateway.ask(PERSONS);
    await asleep.promise;
    const second = gateway.ask('{ persons(first: 1) { items { firstName } } }');
    await gateway.service.arrived(2);
    if (other === honest)
      expect(await second).toMatchObject({ data: { persons: { items: [{}] } } });
    else passed = 30_000;
    woken.resolve();
    expect(await waiting).toMatchObject(answer);
  },
);

test('neither addresses, tokens nor text of a broken answer reach the caller; neither tokens nor answers reach the log', async () => {
  await using gateway = await startGatewayOverService({}, { config: { upstreamTimeoutMs: 200 } });
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
    gateway.service.answer(reply);
    const response = await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    answers.push(JSON.stringify([...response.headers]), await response.text());
  }
  await gateway.service[Symbol.asyncDispose]();
  answers.push(JSON.stringify(await gateway.ask(PERSONS)));

  const allAnswers = answers.join('\n');
  const written = JSON.stringify(gateway.logged);
  const { host, port } = new URL(gateway.service.url);
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

function startRich(config: TestGatewayOptions['config'] = {}, schema = fullService().schema) {
  return startGatewayOverService(
    { schema },
    { snapshot: fullSdl, config: { mutations: 'all', ...config } },
  );
}
