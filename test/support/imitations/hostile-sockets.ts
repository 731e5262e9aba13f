import { gzipSync } from 'node:zlib';
import { type Reply, json, text } from './scripted.ts';

/** The connection breaks before a byte of the answer. */
export const cut: Reply = (response) => void response.destroy();

/** The connection breaks when some of the answer has arrived. */
export const cutInBody: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"data":{"persons":', () => response.destroy());
};

export const silence: Reply = () => {};

/** Headers and the beginning of a body, and nothing more. */
export const unfinished: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write('{"data":');
};

/** An endless body, one byte at a time. */
export const trickle: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const drops = setInterval(() => response.write(' '), 5);
  response.once('close', () => clearInterval(drops));
};

/** Endless interim answers, and no final one. */
export const hints: Reply = (response) => {
  const more = setInterval(() => response.writeEarlyHints({ link: '</x>; rel=preload' }), 5);
  response.once('close', () => clearInterval(more));
};

/** An endless body, as fast as it is read. */
export const flood: Reply = (response) => {
  const megabyte = Buffer.alloc(1024 * 1024, ' ');
  const pour = () => {
    while (!response.destroyed && response.write(megabyte));
  };
  response.writeHead(200, { 'content-type': 'application/json' }).on('drain', pour);
  pour();
};

/** Faults below JSON, or without usable JSON. */
export const WIRES: Record<string, Reply> = {
  'cut before the answer': cut,
  'cut in the answer': cutInBody,
  '204': (response) => void response.writeHead(204).end(),
  '205': text('', 205),
  '304': (response) => void response.writeHead(304).end(),
  '206 of a part': text('{"data":{"me":', 206, { 'content-range': 'bytes 0-13/100' }),
  '101': raw('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc'),
  'no HTTP': raw('SSH-2.0-OpenSSH_9.9\r\n'),
  'HTTP/0.9': raw('<html>'),
  'an unknown version': raw('HTTP/3.7 200 OK\r\n\r\n{}'),
  'a status of four digits': raw('HTTP/1.1 2000 OK\r\n\r\n{}'),
  'two lengths': raw('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x'),
  'a length and chunks': raw(
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
  ),
  'a negative length': raw('HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}'),
  'a length too large': raw('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"data":null}'),
  'a length too small': raw('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{"data":null}'),
  'chunks that are none': raw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n'),
  'a chunk without end': raw(
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n',
  ),
  'a header without end': raw(`HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(200_000)}`),
  'headers without number': raw(`HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(20_000)}\r\n{}`),
  'a second answer behind the first': raw(
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{"data":{"spoilt":"1"}}',
  ),
  'a bomb': (response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb()),
  'a hundred thousand levels in data': text(
    `{"data":${'[{"a":'.repeat(50_000)}1${'}]'.repeat(50_000)}}`,
  ),
  'a hundred thousand levels in errors': text(
    `{"errors":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
  ),
  'ten thousand errors': json({
    data: null,
    errors: Array.from({ length: 10_000 }, () => ({ message: 'No.' })),
  }),
  'a redirect with the token': (response, { token }) =>
    void response.writeHead(307, { location: `/graphql?token=${token}` }).end(token),
  'a refusal with the token': (response, { token }) =>
    void response.writeHead(403).end(JSON.stringify({ type: token, detail: token })),
};

let packed: Buffer | undefined;
function bomb(): Buffer {
  return (packed ??= gzipSync(Buffer.alloc(20 * 1024 * 1024, ' ')));
}

/** Sends these bytes instead of Node's answer. */
function raw(bytes: string): Reply {
  return (response) => void response.socket?.end(bytes);
}
