import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService, startOverFullService } from '../support/gateway/over-service.ts';
import { answersTo } from '../../src/upstream/read-answer.ts';
import type { Failure } from '../../src/upstream/request.ts';
import type { Received, Reply } from '../service/service.ts';
import {
  cut,
  cutInBody,
  flood,
  honest,
  json,
  refusal,
  silence,
  text,
  unfinished,
} from '../service/replies.ts';

/** An endless body, one byte at a time. */
const trickle: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const drops = setInterval(() => response.write(' '), 5);
  response.once('close', () => clearInterval(drops));
};

/** Endless interim answers, and no final one. */
const hints: Reply = (response) => {
  const more = setInterval(() => response.writeEarlyHints({ link: '</x>; rel=preload' }), 5);
  response.once('close', () => clearInterval(more));
};

const PERSONS = '{ persons(first: 1) { items { id } } }';
const CANDIDATE = '{ candidate(id: 1) { id } }';
const RENAME = 'mutation { rename(id: 1, name: "Ada") { id name } }';
/** Neither callers nor the log get anything of an answer that cannot be used. */
const MARK = 'of-the-service';
const HTML = `<!doctype html><title>${MARK}</title>`;
const JSON_TYPE = { 'content-type': 'application/json' };
const BOMB = gzipSync(Buffer.alloc(20 * 1024 * 1024, ' '));
const TIMEOUT_MS = 30_000;

/**
 * What the service does, the code of it, how often a query is sent, and what the log says: of a fault that may pass,
 * the message to the caller.
 */
const faults: [string, Reply, code: string, sent: 1 | 4, words?: RegExp][] = [
  ['a connection that breaks', cut, 'UNREACHABLE', 4],
  ['a connection that breaks in the middle of the answer', cutInBody, 'UNREACHABLE', 4],
  ['429', json({ message: MARK }, 429, { 'retry-after': MARK }), 'RATE_LIMITED', 4],
  ['502', text(HTML, 502, { 'set-cookie': `a=${MARK}` }), 'BAD_RESPONSE', 4, /status 502/],
  ['no answer', silence, 'TIMEOUT', 1],
  ['headers, and a body that never ends', unfinished, 'TIMEOUT', 1],
  ['a body that trickles for ever', trickle, 'TIMEOUT', 1],
  ['early hints, and never more', hints, 'TIMEOUT', 1],
  ['a redirect', text(MARK, 307, { location: `https://${MARK}.example/` }), 'BAD_RESPONSE', 1],
  ['HTML', text(HTML), 'BAD_RESPONSE', 1],
  ['gzip without permission', compressed, 'BAD_RESPONSE', 1, /no proxy compresses answers/],
  ['401 with another detail', refusal(MARK), 'UNAUTHORIZED', 1, /administrator/],
  ['403 that says token_expired', refusal('token_expired', 403), 'UNAUTHORIZED', 1, /administr/],
];

/** Bodies that are not GraphQL: not text, not JSON, or JSON of another shape. */
const BODIES: readonly (Buffer | string)[] = [
  '',
  HTML,
  Buffer.from([0x1f, 0x8b, 0x08, 0xff]),
  Buffer.from('{"data":{"a":"\xff"}}', 'latin1'),
  `{"errors":["${MARK}"`,
  `{"data":{"a":["${MARK}"`,
  ...[
    [{ data: { candidate: MARK } }],
    MARK,
    null,
    { candidate: MARK },
    { type: 'bad', detail: MARK },
    { data: [] },
    { data: MARK },
    { data: null, errors: { a: MARK } },
    { errors: [] },
  ].map((each) => JSON.stringify(each)),
];
/** They are not read with the status of a refused token. */
const OTHERS = [
  '{"detail":"token_expired"}',
  '{"data":{"a":1}}',
  `{"data":{},"errors":[{"message":"${MARK}"}]}`,
];

test.each<[status: number, words: RegExp, bodies?: readonly (Buffer | string)[]]>([
  [200, /BAD_RESPONSE.*not GraphQL JSON/],
  [204, /BAD_RESPONSE.*status 204/],
  [307, /BAD_RESPONSE.*status 307\)\. Check RECRUITING_URL/],
  [400, /BAD_RESPONSE.*status 400/],
  [404, /BAD_RESPONSE.*status 404/],
  [429, /RATE_LIMITED/],
  [500, /BAD_RESPONSE.*status 500/],
  [504, /BAD_RESPONSE.*status 504/],
  [401, /UNAUTHORIZED.*administrator/],
  [403, /UNAUTHORIZED.*administrator/, [...BODIES, ...OTHERS]],
])(
  'an answer with status %i is an error of the gateway whatever its body, of which nothing is passed on',
  (status, words, bodies = BODIES) => {
    for (const said of bodies) {
      const answer = { status, headers: {}, body: Buffer.from(said) };
      const outcome = answersTo('of the gateway')(answer);
      const failure = outcome as Failure;
      const { error, isTemporary = false } = failure;
      expect(`${String(error.extensions['code'])} ${error.message}`).toMatch(words);
      expect(`${error.message} ${JSON.stringify(error.extensions)}`).not.toContain(MARK);
      expect(isTemporary).toBe(status === 429 || status >= 500);
    }
  },
);

test.each(faults)(
  'an answer that is %s has a code; a query is sent again if that can help, a mutation never; then all works again',
  async (_what, reply, what, sent, words) => {
    await using gateway = await startFull();
    const { service, waits } = gateway;
    const code = `UPSTREAM_${what}`;
    const ask = async (operation: string) => {
      const arrived = service.arrived(service.received.length + 1);
      const answer = gateway.ask(operation);
      await arrived;
      if (what === 'TIMEOUT') gateway.age(TIMEOUT_MS);
      return answer;
    };
    // The service has accepted the token.
    const found = { data: { candidate: { id: 1 } } };
    expect(await gateway.ask(CANDIDATE)).toEqual(found);
    const exchanges = service.exchanges.length;
    service.answer(reply);
    const answer = await ask(CANDIDATE);
    expect(answer).toMatchObject({ errors: [{ path: ['candidate'], extensions: { code } }] });
    expect(service.received).toHaveLength(1 + sent);
    expect(waits).toHaveLength(sent - 1);
    // Each wait is twice the one before, and a random part of up to half of it.
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(100 * 2 ** index);
      expect(wait).toBeLessThanOrEqual(150 * 2 ** index);
    }
    const { message } = answer.errors![0]!;
    if (words) expect(sent > 1 ? message : loggedFor(gateway.logged, answer)).toMatch(words);
    if (what === 'TIMEOUT') {
      expect(message).toMatch(/did not answer within 30000 ms/);
      expect(await service.received[1]!.over).toBe('cut');
    }
    const { host, port } = new URL(service.url);
    for (const secret of [host, port, MARK]) expect(JSON.stringify(answer)).not.toContain(secret);
    expect(JSON.stringify(gateway.logged)).not.toContain(MARK);

    const { errors } = await ask(RENAME);
    expect(errors).toMatchObject([{ path: ['rename'], extensions: { code } }]);
    expect(service.received).toHaveLength(2 + sent);

    service.answer(reply, honest);
    if (sent === 1) expect((await ask(CANDIDATE)).errors).toHaveLength(1);
    expect(await gateway.ask(CANDIDATE)).toEqual(found);
    const [before, last] = service.received.slice(-2);
    expect(last!.body).toBe(before!.body);
    expect(service.received).toHaveLength(4 + sent);
    expect(service.exchanges).toHaveLength(exchanges);
  },
);

/** A bomb, which must not be unpacked. */
function compressed(response: ServerResponse, { headers }: Received): void {
  expect(headers['accept-encoding']).toBe('identity');
  response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(BOMB);
}

test('what needs no service is answered without one, and the rest is UPSTREAM_UNREACHABLE', async () => {
  await using gateway = await startFull();
  await gateway.service.close();
  const { data, errors } = await gateway.ask(
    `{ kind: __typename me: viewer { company { id } } allVacancies(limit: 0) { id }
      required: vacancies(first: 1) @skip(if: true) { __typename } }`,
  );
  expect(data).toMatchObject({ kind: 'Query', me: null });
  const message = 'The recruiting service cannot be reached (ECONNREFUSED). Try again later.';
  const extensions = { code: 'UPSTREAM_UNREACHABLE' };
  expect(errors).toMatchObject([{ message, path: ['me'], extensions }]);
  expect(gateway.waits).toHaveLength(3);
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
  async (_who, options, operation, where) => {
    await using gateway = await startGatewayOverService(undefined, options);
    gateway.service.answer(text('{"data":{"persons":oops}}'));
    const { errors } = await gateway.ask(operation);
    expect(errors).toMatchObject([{ ...where, extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }]);
  },
);

test('an answer larger than 8 MB is UPSTREAM_BAD_RESPONSE, and is not read to its end', async () => {
  await using gateway = await startGatewayOverService();
  gateway.service.answer(flood);
  const { errors } = await gateway.ask(PERSONS);
  const message = expect.stringMatching(/larger than 8 MB\. Request fewer records or fields at/);
  expect(errors).toMatchObject([
    { message, path: ['persons'], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } },
  ]);
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
  for (const { errors } of await Promise.all(answers)) {
    expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_UNREACHABLE' } }]);
  }
  expect(gateway.service.received).toHaveLength(2);
  // No wait before another attempt.
  expect(gateway.waits).toEqual([]);
});

test('each page of a drain is sent again by itself', async () => {
  await using gateway = await startGatewayOverService();
  gateway.service.answer(honest, cut, honest, text('', 503), cutInBody, honest);
  const { data, errors } = await gateway.ask('{ allPersons { id } }');
  expect(errors).toBeUndefined();
  expect(data).toEqual({ allPersons: gateway.service.persons.all().map(({ id }) => ({ id })) });
  expect(gateway.service.received).toHaveLength(6);
});

test('only the token is removed from an answer that contains it', async () => {
  await using gateway = await startFull();
  const { pair } = (await gateway.store.read()).state!;
  const me = { _rsType: 'Candidate', id: 1, name: null };
  const sent = [`Bearer ${pair.accessToken}, twice: ${pair.accessToken}`];
  const errors = [{ message: `Who is ${pair.accessToken}?`, path: ['me', 'name'] }];
  const data = { me: { ...me, extra: { sent } } };
  gateway.service.answer(json({ data, errors }), json({ data }));
  const query = '{ me { id name ... on Candidate { extra } } }';
  const cleaned = { me: { id: 1, extra: { sent: ['Bearer [removed], twice: [removed]'] } } };
  expect(await gateway.ask(query)).toMatchObject({
    data: cleaned,
    errors: [{ message: 'Who is [removed]?', path: ['me', 'name'] }],
  });
  expect(await gateway.ask(query)).toMatchObject({ data: cleaned });
});

function startFull() {
  return startOverFullService({ config: { mutations: 'all', upstreamTimeoutMs: TIMEOUT_MS } });
}
