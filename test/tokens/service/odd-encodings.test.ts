/** Answers that carry a pair, whatever their status and encoding: over real sockets. */
import { createServer } from 'node:net';
import * as zlib from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { tokenEndpoint } from '../../../src/tokens/service/exchange.ts';
import { listenForTest } from '../../support/test-server.ts';

const PAIR = { access_token: 'made-access', refresh_token: 'made-refresh', expires_in: 7200 };
const JSON_TEXT = JSON.stringify(PAIR);
const GRANT = { accessToken: 'made-access', refreshToken: 'made-refresh', expiresIn: 7200 };
const LATE = { error: 'gateway timeout', upstream: { body: PAIR } };

interface Answer {
  status?: string;
  headers?: readonly string[];
  body: string | Uint8Array;
}

describe('a pair is taken', () => {
  test.each<[string, Answer]>([
    ...['200 OK', '201 Created', '202 Accepted', '203 Non-Authoritative', '206 x', '299 Odd'].map(
      (status): [string, Answer] => [`from a ${status}`, { status, body: JSON_TEXT }],
    ),
    ['from gzip', encoded('gzip', zlib.gzipSync(JSON_TEXT))],
    ['from x-gzip', encoded('X-GZIP', zlib.gzipSync(JSON_TEXT))],
    ['from deflate', encoded('deflate', zlib.deflateSync(JSON_TEXT))],
    ['from raw deflate', encoded('deflate', zlib.deflateRawSync(JSON_TEXT))],
    ['from br', encoded('br', zlib.brotliCompressSync(JSON_TEXT))],
    ['from zstd', encoded('zstd', zlib.zstdCompressSync(JSON_TEXT))],
    ['from gzip within br', encoded('gzip, br', zlib.brotliCompressSync(zlib.gzipSync(JSON_TEXT)))],
    ['from gzip that no header names', { body: zlib.gzipSync(JSON_TEXT) }],
    ['from gzip whose end is cut', encoded('gzip', zlib.gzipSync(JSON_TEXT).subarray(0, -6))],
    ['from br with bytes behind it', encoded('br', join(zlib.brotliCompressSync(JSON_TEXT), '\0'))],
    ['from plain JSON that a header calls gzip', encoded('gzip', Buffer.from(JSON_TEXT))],
    ['from plain JSON of an unknown encoding', encoded('snappy', Buffer.from(JSON_TEXT))],
    ['from UTF-8 with a byte order mark', { body: `\uFEFF${JSON_TEXT}` }],
    ['from UTF-16', { body: utf16('\uFEFF') }],
    ['from UTF-16 without a byte order mark', { body: utf16('') }],
    ['from UTF-16 big-endian', { body: utf16('\uFEFF').swap16() }],
    ['from UTF-16 big-endian without a byte order mark', { body: utf16('').swap16() }],
    ['from gzip of UTF-16', encoded('gzip', zlib.gzipSync(utf16('\uFEFF')))],
    ['with bytes behind the JSON', { body: `${JSON_TEXT}\r\n<!-- 0.12 s -->` }],
    ['with a second document behind it', { body: `${JSON_TEXT}{"access_token":"other"}` }],
    ['with a guard in front of the JSON', { body: `)]}',\n${JSON_TEXT}` }],
    ['before a flood', { body: JSON_TEXT + ' '.repeat(200_000) }],
  ])('%s', async (_, answer) => {
    expect(await exchange(answer)).toMatchObject({ kind: 'granted', grant: GRANT });
  });
});

describe('an answer that is not understood', () => {
  test.each<[string, Answer, number]>([
    ['a 5xx that names a pair', { status: '503 Busy', body: JSON_TEXT }, 503],
    ['a redirect that names a pair', { status: '307 There', body: JSON_TEXT }, 307],
    ['a 400 that names a pair', { status: '400 Bad', body: JSON_TEXT }, 400],
    ['a 401 that names a pair', { status: '401 No', body: JSON_TEXT }, 401],
    ['a 429 that names a pair', { status: '429 Later', body: JSON_TEXT }, 429],
    ['a 200 with the pair further inside', { body: JSON.stringify(LATE) }, 200],
    ['a 200 cut behind the pair', { body: JSON_TEXT.slice(0, -3) }, 200],
    ['a 200 with a form', { body: 'access_token=a&refresh_token=r' }, 200],
    ['a 200 with HTML', { body: '<html>' }, 200],
    ['a 500', { status: '500 Oops', body: 'Oops' }, 500],
  ])('an answer (%s) is uncertain, and returned byte for byte', async (_, answer, status) => {
    const outcome = await exchange(answer);
    expect(outcome).toMatchObject({ kind: 'uncertain', answer: { status } });
    expect(outcome.answer!.body.toString()).toBe(answer.body.toString());
  });

  test('an unread answer is returned with the headers that are needed to read it', async () => {
    const body = zlib.gzipSync('<html>');
    expect(await exchange(encoded('gzip', body))).toMatchObject({
      kind: 'uncertain',
      answer: { contentEncoding: 'gzip', body },
    });
  });

  test('an answer that is not HTTP is returned from its first byte', async () => {
    const headers = ['bad header without a colon'];
    const outcome = await exchange({ headers, body: JSON_TEXT });
    expect(outcome).toMatchObject({ kind: 'uncertain', answer: { status: 0 } });
    expect(outcome.answer!.body.toString()).toContain(JSON_TEXT);
  });

  test('no more of an unread answer is returned than a token set may have', async () => {
    const outcome = await exchange({ body: 'x'.repeat(300_000) });
    expect(outcome).toMatchObject({ kind: 'uncertain' });
    expect(outcome.answer!.body).toHaveLength(65_536);
  });

  test('an answer that unpacks to a huge size is read in a short time', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(50_000_000, ' '));
    expect(await exchange(encoded('gzip', bomb))).toMatchObject({ kind: 'uncertain' });
  });

  test.each(['204 No Content', '500 Oops'])(
    'an answer without a body is not kept as one that was not understood: %s',
    async (status) => {
      const outcome = await exchange({ status, body: '' });
      expect(outcome).toEqual({ kind: 'uncertain', why: expect.any(String) });
    },
  );

  test('an answer with only one token is returned too, and the token is used', async () => {
    const body = '{"access_token":"made-access","refreshToken":"made-refresh"}';
    const outcome = await exchange({ body });
    expect(outcome).toMatchObject({ kind: 'granted', grant: { refreshToken: undefined } });
    expect(outcome.answer!.body.toString()).toBe(body);
  });
});

test('a clear refusal is not returned as unread', async () => {
  const refusal = { status: '400 Bad', body: '{"error":"invalid_grant"}' };
  expect(await exchange(refusal)).toEqual({ kind: 'invalid-grant' });
});

function encoded(encoding: string, body: Uint8Array): Answer {
  return { headers: [`content-encoding: ${encoding}`], body };
}

function utf16(mark: string): Buffer {
  return Buffer.from(mark + JSON_TEXT, 'utf16le');
}

function join(...parts: (string | Uint8Array)[]): Buffer {
  return Buffer.concat(parts.map((part) => Buffer.from(part)));
}

async function exchange({ status = '200 OK', headers = [], body }: Answer) {
  const bytes = Buffer.from(body as string);
  const head = [`HTTP/1.1 ${status}`, ...headers, 'connection: close', '', ''].join('\r\n');
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(join(head, bytes)));
  });
  const baseUrl = `http://127.0.0.1:${await listenForTest(server, '127.0.0.1')}`;
  const service = { baseUrl, agent: 'test', proxy: undefined, clock: systemClock };
  const endpoint = await tokenEndpoint(service)();
  try {
    const outcome = await endpoint.exchange('refresh', () => true);
    return { ...outcome } as typeof outcome & { answer?: { status: number; body: Buffer } };
  } finally {
    await endpoint.close();
  }
}
