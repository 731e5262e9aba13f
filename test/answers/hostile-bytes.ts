import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { Received, Reply } from '../service/service.ts';
import { cut, cutInBody, json, text } from '../service/replies.ts';

/** Stands for the token until it is known. */
const TOKEN = '$TOKEN';

/** The honest answer with faults at some places, or no answer. */
export function hostile(): fc.Arbitrary<Reply> {
  const wire = fc.constantFrom(...WIRES);
  return fc.oneof({ weight: 8, arbitrary: spoilt() }, { weight: 2, arbitrary: wire });
}

function spoilt(): fc.Arbitrary<Reply> {
  return fc
    .record({
      changes: fc.array(fc.record({ place: fc.nat(400), value: anyValue() }), { maxLength: 3 }),
      errors: fc.option(errors(), { nil: undefined }),
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

function errors(): fc.Arbitrary<unknown> {
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
