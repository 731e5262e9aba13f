import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { startOverFullService, type GatewayOverService } from '../support/gateway/over-service.ts';
import { cut, cutInBody, honest, json, text } from '../service/replies.ts';
import type { Received, Reply } from '../service/service.ts';
import { ask as askFor, partsOf, type Payload } from '../support/clients/multipart.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const PEOPLE = [1, 7, 3].map((id) => `{ __typename: "Candidate", id: ${id} }`).join(' ');
const RECORD =
  '__typename id name stage appliedAt extra score rank friends { id } vacancy { title }';

const QUERIES = [
  `{ me { __typename id ... on Candidate { ${RECORD} } } other: failing }`,
  `{ activeCandidates(first: 3) { items { ${RECORD} } pageInfo { hasNextPage endCursor } } }`,
  `{ allCandidates(limit: 40) { ${RECORD} } }`,
  '{ applicants(first: 5) { items { __typename ... on Robot { model } ... on Candidate { id } } } }',
  `{ c: candidatesConnection(first: 35) { edges { n: node { ${RECORD} } } pageInfo { hasNextPage } } }`,
  '{ applicantsConnection(last: 5) { nodes { __typename } pageInfo { hasPreviousPage } } }',
  '{ openings(first: 3) { items { id candidates { items { id rank history { items { at } } } } } } }',
  `{ _entities(representations: [${PEOPLE}]) { ... on Candidate { id rank extra } } }`,
  '{ allActiveCandidates @stream { id rank extra } }',
  'mutation { rename(id: 3, name: "Candidate 3") { id name score } }',
  '{ __proto__: me { constructor: id toString: __typename } }',
];

/** The longest pause of the circuit breaker. */
const LONGEST_PAUSE_MS = 30_000;

/** Codes of the gateway's own errors. */
const OURS = /^(UPSTREAM|DRAIN|CURSOR)_/;

const strays: unknown[] = [];
const noteStray = (error: unknown) => strays.push(error);
process.on('unhandledRejection', noteStray).on('uncaughtExceptionMonitor', noteStray);
afterAll(() => {
  process.off('unhandledRejection', noteStray).off('uncaughtExceptionMonitor', noteStray);
});

test('whatever the service answers, callers get an answer with known codes and without secrets, and other callers are not affected', async () => {
  const config = { mutations: 'all', drainMaxItems: 400, connectionMax: 60 } as const;
  await using gateway = await startOverFullService({ config });
  const truths = new Map<string, Answer>();
  for (const query of QUERIES) truths.set(query, await ask(gateway, query));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...QUERIES), hostile(), async (query, reply) => {
      gateway.service.answer(reply);
      expectHarmless(await ask(gateway, query), gateway);
      gateway.service.answer(honest);
      // The circuit breaker may be open now: after a pause a probe is sent, and then all requests.
      gateway.age(LONGEST_PAUSE_MS);
      await ask(gateway, '{ me { __typename } }');
      expect((await ask(gateway, query)).payloads).toEqual(truths.get(query)!.payloads);
    }),
    { numRuns: randomRuns(200), interruptAfterTimeLimit: 3_000_000, timeout: 20_000 },
  );
  const secrets = gateway.service.received.map(({ token }) => token);
  const written = JSON.stringify(gateway.logged) + (await gateway.gateway.metrics.metrics());
  for (const secret of new Set(secrets)) expect(written).not.toContain(secret);
  // Answers that cannot be used are reported to the operator; nothing else may be logged as an error.
  const logged = gateway.logged.filter(
    ({ level, msg, trouble }) =>
      Number(level) >= 50 &&
      trouble !== 'unauthorized' &&
      !String(msg).includes('temporarily unavailable'),
  );
  expect(logged).toEqual([]);
  expect({}).not.toHaveProperty('spoilt');
  expect(strays).toEqual([]);
}, 3_600_000);

interface Answer {
  readonly response: Response;
  readonly written: string;
  readonly payloads: readonly Payload[];
}

async function ask(gateway: GatewayOverService, query: string): Promise<Answer> {
  const accept = query.includes('@') ? 'multipart/mixed' : 'application/json';
  const response = await askFor(gateway, query, {}, accept);
  const written = await response.text();
  const payloads = await Array.fromAsync(partsOf(new Response(written, response)));
  return { response, written, payloads };
}

function expectHarmless(
  { response, written, payloads }: Answer,
  { service, logged }: GatewayOverService,
): void {
  expect(response.status).toBe(200);
  expect(response.headers.get('x-spoilt')).toBeNull();
  expect(response.headers.get('www-authenticate')).toBeNull();
  const { token } = service.received.at(-1)!;
  expect(written).not.toContain(token);
  expect(written).not.toContain(new URL(service.url).host);
  expect(written).not.toMatch(/node_modules|\.ts:\d/);
  const parts = payloads.flatMap(({ incremental = [], ...first }) => [first, ...incremental]);
  // `errors: null` is passed on, and is not an error.
  for (const error of parts.flatMap(({ errors }) => errors ?? [])) {
    const { code, id } = error.extensions ?? {};
    expect(error.message).toEqual(expect.any(String));
    // The gateway's errors always have a code; an error without one, or with another one, is the service's.
    const unexpected = logged.find(
      ({ requestId, msg }) => msg === 'unexpected error' && requestId === id,
    );
    expect(code === 'INTERNAL_SERVER_ERROR' && unexpected).toBeFalsy();
    expect(error.message).not.toMatch(/inside the gateway|call stack|undefined|Cannot read/);
    // An error of the service that imitates a code of the gateway has no path if it names none; its messages are short.
    const isOfNoPlace = error.message.length < 45 || /reported \d+ more errors/.test(error.message);
    if (OURS.test(String(code)) && !isOfNoPlace)
      expect(error.path, JSON.stringify(error)).toBeDefined();
  }
}

/** Stands for the token until it is known. */
const TOKEN = '$TOKEN';

/** The honest answer with faults at some places, or no answer. */
function hostile(): fc.Arbitrary<Reply> {
  const wire = fc.constantFrom(...WIRES);
  return fc.oneof({ weight: 8, arbitrary: spoilt() }, { weight: 2, arbitrary: wire });
}

function spoilt(): fc.Arbitrary<Reply> {
  return fc
    .record({
      changes: fc.array(fc.record({ place: fc.nat(400), value: anyValue() }), { maxLength: 3 }),
      errors: fc.option(anyErrors(), { nil: undefined }),
      extensions: fc.option(anyValue(), { nil: undefined, freq: 8 }),
      status: fc.constantFrom(200, 200, 200, 200, 201, 400, 403, 429, 500, 503),
      form: fc.constantFrom(...FORMS, ...Array<Form>(8).fill((body) => ({ body }))),
    })
    .map((how) => async (response, received, service) => {
      const { body } = await service.honestAnswer(received);
      const root = { answer: JSON.parse(JSON.stringify(body)) as Record<string, unknown> };
      for (const { place, value } of how.changes) change(root, place, structuredClone(value));
      const { answer } = root;
      if (typeof answer === 'object' && answer !== null) {
        if (how.errors !== undefined) answer['errors'] = how.errors;
        if (how.extensions !== undefined) answer['extensions'] = how.extensions;
      }
      const written = JSON.stringify(answer) ?? 'undefined';
      const formed = how.form(written.replaceAll(TOKEN, received.token), received);
      const headers = { 'content-type': 'application/json', 'retry-after': '0', ...formed.headers };
      response.writeHead(how.status, headers).end(formed.body);
    });
}

/** Changes the text of an answer. */
type Form = (
  written: string,
  received: Received,
) => { readonly body: string | Buffer; readonly headers?: Record<string, string> };

const FORMS: readonly Form[] = [
  (body) => ({ body: body.slice(0, body.length / 2) }),
  (body) => ({ body: `\uFEFF${body}` }),
  (body) => ({ body: Buffer.from(`\uFEFF${body}`, 'utf16le') }),
  (body) => ({ body: Buffer.concat([Buffer.from(body), Buffer.from([0xc3, 0x28, 0xff])]) }),
  (body) => ({ body: `{"data":5,"errors":[],${body.slice(1)}` }),
  (body) => ({ body: `<html>${body}</html>`, headers: { 'content-type': 'text/html' } }),
  (body) => ({ body: gzipSync(body), headers: { 'content-encoding': 'gzip' } }),
  (body) => ({ body, headers: { 'content-encoding': 'gzip' } }),
  (body, { token }) => ({ body, headers: { 'set-cookie': token, 'www-authenticate': token } }),
  (body, { token }) => ({ body, headers: { location: `https://x.test/${token}` } }),
  (body) => ({ body: `${' '.repeat(2_000_000)}${body}` }),
];

const VALUES: readonly unknown[] = [
  [null, true, 0, -1, 0.5, 2 ** 31, 2 ** 53, 1e300, '', 'GHOST', '\u0000\u2028\ud800', TOKEN],
  [`Bearer ${TOKEN}`, 'x'.repeat(100_000), [], [null], {}, [{ id: null }], { [TOKEN]: TOKEN }],
  [{ __typename: 'Ghost' }, { __typename: 'Robot' }, { items: null, pageInfo: null }],
  [
    { items: [{}, null], pageInfo: { hasNextPage: true, endCursor: 'same' } },
    JSON.parse('{"__proto__":{"spoilt":1},"constructor":{"prototype":{"spoilt":1}},"toJSON":"x"}'),
    JSON.parse('{"then":"y","length":4294967295,"message":"z","extensions":{"code":"Q"}}'),
    Array.from({ length: 3_000 }, (_, id) => ({ id, __typename: 'Candidate' })),
  ],
].flat();

function anyValue(): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...VALUES) },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  );
}

const CODES = ['UNAUTHENTICATED', 'INTERNAL_SERVER_ERROR', 'DRAIN_STALLED', 'TOKENS_LOST'];
const STEPS = [0, 1, -1, 0.5, '0', 'me', 'id', 'items', 'length', '__proto__', null, {}, TOKEN];

function anyErrors(): fc.Arbitrary<unknown> {
  const http = { status: 418, headers: { 'x-spoilt': 'yes' } };
  const extensions = fc.record({
    code: fc.constantFrom<unknown>(...CODES, 7, null, TOKEN),
    http: fc.constantFrom<unknown>(undefined, http, 'x', null),
    unexpected: fc.constantFrom(undefined, true),
    resumeAfter: anyValue(),
  });
  const error = fc.record(
    {
      message: fc.constantFrom<unknown>('No.', TOKEN, 5, null, {}, ''),
      path: fc.oneof(fc.array(fc.constantFrom<unknown>(...STEPS), { maxLength: 5 }), anyValue()),
      extensions: fc.oneof(anyValue(), extensions),
      locations: anyValue(),
    },
    { requiredKeys: [] },
  );
  return fc.oneof(
    { weight: 5, arbitrary: fc.array(fc.oneof(error, anyValue()), { maxLength: 4 }) },
    { weight: 1, arbitrary: anyValue() },
  );
}

/** Faults below JSON, or without usable JSON. */
const WIRES: readonly Reply[] = [
  cut,
  cutInBody,
  (response) => void response.writeHead(204).end(),
  text('{"data":{"me":', 206, { 'content-range': 'bytes 0-13/100' }),
  raw('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc'),
  raw('SSH-2.0-OpenSSH_9.9\r\n'),
  raw('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"data":null}'),
  raw(`HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(200_000)}`),
  (response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB),
  text(`{"data":${'[{"a":'.repeat(50_000)}1${'}]'.repeat(50_000)}}`),
  text(`{"errors":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
  json({ data: null, errors: Array.from({ length: 10_000 }, () => ({ message: 'No.' })) }),
  (response, { token }) =>
    void response.writeHead(307, { location: `/graphql?token=${token}` }).end(token),
  (response, { token }) =>
    void response.writeHead(403).end(JSON.stringify({ type: token, detail: token })),
];

const BOMB = gzipSync(Buffer.alloc(20 * 1024 * 1024, ' '));

/** Sends these bytes instead of Node's answer. */
function raw(bytes: string): Reply {
  return (response) => void response.socket?.end(bytes);
}

/** Puts a value at one of the places of a tree, including the root, or removes what is there. */
function change(root: object, place: number, put: unknown): void {
  const places: [holder: Record<string, unknown>, key: string][] = [];
  const walk = (holder: object) => {
    for (const [key, value] of Object.entries(holder).slice(0, 60)) {
      places.push([holder as Record<string, unknown>, key]);
      if (typeof value === 'object' && value !== null) walk(value as object);
    }
  };
  walk(root);
  const [holder, key] = places[place % places.length]!;
  if (place % 7 === 3) delete holder[key];
  else holder[key] = put;
}
