import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { WIRES } from './hostile-sockets.ts';
import type { Received, Reply } from './scripted.ts';

/** Answers of a broken or hostile service. */
interface Hostile {
  /** Describes it in the failure of a test. */
  readonly what: string;
  readonly reply: Reply;
}

/** Stands for the token until it is known. */
const TOKEN = '$TOKEN';

/** The honest answer with faults at some places, or no answer. */
export function hostile(): fc.Arbitrary<Hostile> {
  return fc.oneof({ weight: 8, arbitrary: spoilt() }, { weight: 2, arbitrary: wire() });
}

function spoilt(): fc.Arbitrary<Hostile> {
  return fc
    .record({
      changes: fc.array(fc.record({ place: fc.nat(400), value: anyValue() }), { maxLength: 3 }),
      errors: fc.option(errors(), { nil: undefined }),
      extensions: fc.option(anyValue(), { nil: undefined, freq: 8 }),
      status: fc.constantFrom(200, 200, 200, 200, 201, 400, 403, 429, 500, 503),
      form: fc.constantFrom(...Object.keys(FORMS), ...Array<string>(8).fill('as it is')),
    })
    .map((how) => ({
      what: JSON.stringify(how).slice(0, 2_000),
      reply: async (response, received, sandbox) => {
        const { authorization = '' } = received.headers;
        const headers = { authorization, 'content-type': 'application/json' };
        const { body } = received;
        const answer = await fetch(`${sandbox.url}/graphql`, { method: 'POST', headers, body });
        const root = { answer: (await answer.json()) as Record<string, unknown> };
        for (const { place, value: put } of how.changes) change(root, place, structuredClone(put));
        const { answer: changed } = root;
        if (isObject(changed)) {
          if (how.errors !== undefined) changed['errors'] = errorsAt(how.errors, changed['data']);
          if (how.extensions !== undefined) changed['extensions'] = how.extensions;
        }
        const written = JSON.stringify(changed) ?? 'undefined';
        const formed = FORMS[how.form]!(written.replaceAll(TOKEN, received.token), received);
        response.writeHead(how.status, {
          'content-type': 'application/json',
          'retry-after': '0',
          ...formed.headers,
        });
        response.end(formed.body);
      },
    }));
}

interface WrittenAnswer {
  readonly body: string | Buffer;
  readonly headers?: Record<string, string>;
}

/** The text of an answer, while it is changed. */
const FORMS: Record<string, (written: string, received: Received) => WrittenAnswer> = {
  'as it is': (body) => ({ body }),
  'cut off': (body) => ({ body: body.slice(0, body.length / 2) }),
  'with a byte order mark': (body) => ({ body: `\uFEFF${body}` }),
  'in UTF-16': (body) => ({ body: Buffer.from(`\uFEFF${body}`, 'utf16le') }),
  'invalid UTF-8': (body) => ({
    body: Buffer.concat([
      Buffer.from(body.slice(0, -30)),
      Buffer.from([0xc3, 0x28, 0xff, 0xed, 0xa0, 0x80]),
      Buffer.from(body.slice(-30)),
    ]),
  }),
  'with duplicate keys': (body) => ({ body: `{"data":5,"errors":[],${body.slice(1)}` }),
  'with more behind it': (body) => ({ body: `${body}${body}` }),
  'in single quotes': (body) => ({ body: body.replaceAll('"', "'") }),
  'as HTML': (body) => ({ body: `<html>${body}</html>`, headers: { 'content-type': 'text/html' } }),
  'of another type': (body) => ({ body, headers: { 'content-type': 'image/png; charset=x' } }),
  'in gzip': (body) => ({ body: gzipSync(body), headers: { 'content-encoding': 'gzip' } }),
  'in gzip, unsaid': (body) => ({ body: gzipSync(body) }),
  'in brotli': (body) => ({
    body: brotliCompressSync(body),
    headers: { 'content-encoding': 'br' },
  }),
  'in two codings': (body) => ({
    body: gzipSync(deflateSync(body)),
    headers: { 'content-encoding': 'deflate, gzip' },
  }),
  'gzip that is none': (body) => ({ body, headers: { 'content-encoding': 'gzip' } }),
  'with the token in headers': (body, { token }) => ({
    body,
    headers: { 'x-token': token, 'set-cookie': `t=${token}`, 'www-authenticate': token },
  }),
  'with a redirect': (body, { token }) => ({
    body,
    headers: { location: `https://x.test/${token}` },
  }),
  'very long': (body) => ({ body: `${' '.repeat(2_000_000)}${body}` }),
};

const VALUES: unknown[] = [
  [null, true, false, 0, -1, 0.5, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 1e300, -0],
  ['', '0', 'NaN', 'Infinity', '1e999', 'GHOST', '__proto__', '\u0000\u2028\ud800', TOKEN],
  [`Bearer ${TOKEN}`, 'x'.repeat(100_000), [], [null], [[[]]], {}, { a: 1 }, [{ id: null }]],
  [{ __typename: 'Ghost' }, { __typename: 'Robot' }, { __typename: 5 }, { [TOKEN]: TOKEN }],
  [
    JSON.parse('{"__proto__":{"spoilt":1},"constructor":{"prototype":{"spoilt":1}},"toString":1}'),
    JSON.parse(
      '{"toJSON":"x","then":"y","length":4294967295,"message":"z","extensions":{"code":"Q"}}',
    ),
    { items: null, pageInfo: null },
    { items: [{}, null], pageInfo: { hasNextPage: true, endCursor: 'same' } },
    Array.from({ length: 3_000 }, (_, id) => ({ id, __typename: 'Candidate' })),
    nested(60),
    nested(2_000),
  ],
].flat();

function anyValue(): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...VALUES) },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  );
}

const CODES = ['UNAUTHENTICATED', 'FORBIDDEN', 'BAD_USER_INPUT', 'INTERNAL_SERVER_ERROR'];
const DRAIN_CODES = [
  'DRAIN_STALLED',
  'DRAIN_LIMIT_EXCEEDED',
  'UPSTREAM_UNREACHABLE',
  'TOKENS_LOST',
];

/** An error whose path is still a choice: to some place of the data, with more steps after it. */
function errors(): fc.Arbitrary<unknown> {
  const path = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ place: fc.nat(400), more: fc.array(step(), { maxLength: 2 }) }),
    },
    { weight: 1, arbitrary: fc.array(step(), { maxLength: 5 }) },
    { weight: 1, arbitrary: anyValue() },
  );
  const extensions = fc.oneof(
    anyValue(),
    fc.record({
      code: fc.constantFrom<unknown>(...CODES, ...DRAIN_CODES, 7, null, TOKEN),
      http: fc.constantFrom<unknown>(
        undefined,
        { status: 418, headers: { 'x-spoilt': 'yes' } },
        'x',
        null,
      ),
      unexpected: fc.constantFrom(undefined, true),
      originalError: fc.constantFrom(undefined, { stack: 'x' }),
      resumeAfter: anyValue(),
    }),
  );
  const error = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record(
        {
          message: fc.constantFrom<unknown>('No.', TOKEN, 5, null, {}, ''),
          path,
          extensions,
          locations: anyValue(),
        },
        { requiredKeys: [] },
      ),
    },
    { weight: 1, arbitrary: anyValue() },
  );
  return fc.oneof(
    { weight: 5, arbitrary: fc.array(error, { maxLength: 4 }) },
    { weight: 1, arbitrary: anyValue() },
  );
}

function step(): fc.Arbitrary<unknown> {
  return fc.constantFrom<unknown>(
    0,
    1,
    -1,
    4_294_967_294,
    0.5,
    '0',
    'id',
    'items',
    'length',
    '__proto__',
    'constructor',
    'map',
    null,
    {},
    TOKEN,
  );
}

/** Faults below JSON. */
function wire(): fc.Arbitrary<Hostile> {
  return fc.constantFrom(...Object.entries(WIRES)).map(([what, reply]) => ({ what, reply }));
}

/** Puts a value at one of the places of a tree, including the root. */
function change(root: { answer: unknown }, place: number, put: unknown): void {
  const places: [Record<string, unknown>, string][] = [];
  walk(root, 'answer', (holder, key) => places.push([holder, key]));
  const [holder, key] = places[place % places.length]!;
  if (place % 7 === 3) delete holder[key];
  else holder[key] = put;
}

/** Resolves the paths of errors that are still choices. */
function errorsAt(unresolved: unknown, data: unknown): unknown {
  if (!Array.isArray(unresolved)) return unresolved;
  const paths: unknown[][] = [];
  follow(data, [], (path) => paths.push(path));
  return unresolved.map((error: unknown) => {
    const path = isObject(error) ? error['path'] : undefined;
    if (!isObject(error) || !isObject(path) || !('place' in path)) return error;
    const start = paths[Number(path['place']) % paths.length] ?? [];
    return { ...error, path: [...start, ...(path['more'] as unknown[])] };
  });
}

function walk(
  holder: Record<string, unknown>,
  key: string,
  see: (holder: Record<string, unknown>, key: string) => void,
): void {
  see(holder, key);
  const value = holder[key];
  if (typeof value !== 'object' || value === null) return;
  for (const inner of Object.keys(value).slice(0, 60))
    walk(value as Record<string, unknown>, inner, see);
}

function follow(value: unknown, path: unknown[], see: (path: unknown[]) => void): void {
  see(path);
  if (typeof value !== 'object' || value === null || path.length > 20) return;
  for (const [key, inner] of Object.entries(value).slice(0, 60)) {
    follow(inner, [...path, Array.isArray(value) ? Number(key) : key], see);
  }
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
