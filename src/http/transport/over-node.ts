import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { finished } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import { BodyParts, type BodyLimits } from '../../read-body.ts';
import { Exchange, isPiece, isStream, type Body, type Piece, type Reply } from '../exchange.ts';

/** An exchange over a socket. */
export class NodeExchange extends Exchange {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly request: IncomingMessage;
  readonly #response: ServerResponse | undefined;

  constructor(request: IncomingMessage, response?: ServerResponse) {
    super();
    const { method = '', url = '' } = request;
    const mark = url.indexOf('?');
    this.method = method;
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = mark < 0 ? '' : url.slice(mark + 1);
    this.request = request;
    this.#response = response;
  }

  get host(): string | undefined {
    return this.request.headers.host;
  }

  get peer(): string | undefined {
    return this.request.socket.remoteAddress;
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
  }

  get headBytes(): number {
    const { rawHeaders } = this.request;
    let bytes = BYTES_OF_ANY + this.path.length + this.query.length;
    for (const text of rawHeaders) bytes += BYTES_OF_TEXT + text.length;
    return bytes;
  }

  dropHead(): void {
    const { request, headBytes } = this;
    request.rawHeaders = [];
    request.headers = {};
    this.letGo(headBytes - this.headBytes);
  }

  hangUp(): void {
    this.request.socket.destroy();
  }

  get isBehindOthers(): boolean {
    // Node gives a response the connection when it is its turn.
    return this.#response?.socket === null;
  }

  readBody(limits: BodyLimits): Promise<string> {
    const { request } = this;
    return new Promise((resolve, reject) => {
      const parts = new BodyParts(limits);
      const stop = (reason: unknown) => {
        parts.drop();
        request.off('data', onData).off('end', onEnd).pause();
        this.offLeave(onLeave);
        reject(reason);
      };
      const onData = (part: Buffer) => {
        try {
          parts.add(part);
        } catch (error) {
          // Destroying the request would close the connection before the caller has the answer.
          stop(error);
        }
      };
      const onEnd = () => {
        // They would keep the text, by the promise, as long as the request.
        request.off('data', onData).off('end', onEnd);
        this.offLeave(onLeave);
        const text = textOf(parts.bytes());
        parts.drop();
        resolve(text);
      };
      const onLeave = () => {
        stop(new DOMException('The caller left while sending.', 'AbortError'));
      };
      request.on('data', onData).on('end', onEnd);
      this.onLeave(onLeave);
    });
  }
}

/** Of a request with its response and its connection, while it waits; measured without headers. */
const BYTES_OF_ANY = 8 * 1024;
/** Of a name or a value of a header, beside its characters: each pair is in a list, and in an object. */
const BYTES_OF_TEXT = 55;

/** Removes the byte order mark that some clients send before their JSON. */
function textOf(bytes: Buffer): string {
  const text = bytes.toString();
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

export interface NodeAnswering {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly clock: Clock;
}

/** The size up to which bytes are passed on as a string with a character for each byte. */
const SMALL = 16 * 1024;
/** The size up to which pieces are joined, bytes. */
const JOINED = 64 * 1024;
/** The bytes after which other requests get a turn: one fast reader would otherwise occupy the event loop. */
const TURN = 128 * 1024;
/** The longest time from the refusal of a body to the end of its connection, ms. */
const LINGER_MS = 1_000;

/**
 * Writes a reply as fast as the caller reads it. Returns no promise if the reply is written at once.
 *
 * @param headers all headers; `content-length` is added to them
 */
export function writeReply(
  { status, body = '' }: Reply,
  headers: Record<string, string>,
  answering: NodeAnswering,
): Promise<void> | undefined {
  const { request, response } = answering;
  if (response.destroyed) return undefined;
  if (isStream(body)) return writeBodies(body, response, () => response.writeHead(status, headers));
  const length = lengthOf(body);
  // These have no body (RFC 9110, 8.6).
  if (status !== 204 && status !== 304) headers['content-length'] = String(length);
  response.writeHead(status, headers);
  if (headers['connection'] === 'close' && !request.complete) return endUnread(body, answering);
  if (length === 0) response.end();
  else if (isPiece(body)) response.end(body);
  // Node joins such a string with the headers. A buffer would be a second part of the write, which costs more.
  else if (length <= SMALL) response.end(latin1Of(body), 'latin1');
  else if (length <= JOINED) response.end(joined(body, length));
  else return writeBodies([body], response);
  return undefined;
}

/** A string with a character for each byte. */
function latin1Of(pieces: readonly Piece[]): string {
  let all = '';
  for (const piece of pieces) {
    const isOne = typeof piece === 'string' && Buffer.byteLength(piece) === piece.length;
    all += isOne ? piece : asBuffer(piece).toString('latin1');
  }
  return all;
}

function asBuffer(piece: Piece): Buffer {
  if (typeof piece === 'string') return Buffer.from(piece);
  return Buffer.isBuffer(piece) ? piece : Buffer.from(piece);
}

/** @param writeHead called when the first body is there: if that one fails, the reply can still be another one */
async function writeBodies(
  bodies: Iterable<Body> | AsyncIterable<Body>,
  response: ServerResponse,
  writeHead?: () => void,
): Promise<void> {
  const closed = new AbortController();
  const onClose = () => closed.abort();
  response.once('close', onClose);
  let sinceTurn = 0;
  try {
    for await (const body of bodies) {
      for (const part of partsOf(body)) {
        if (response.destroyed) return;
        if (!response.headersSent) writeHead?.();
        sinceTurn += part.length;
        if (!response.write(part)) await drained(response, closed.signal);
        if (sinceTurn < TURN) continue;
        sinceTurn = 0;
        await nextTurn();
      }
      if (response.destroyed) return;
    }
    if (!response.headersSent) writeHead?.();
    response.end();
  } finally {
    response.off('close', onClose);
  }
}

async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  // This rejects if the connection has ended, and then `destroyed` is set.
  await once(response, 'drain', { signal }).catch(() => undefined);
}

/** Joins small pieces: each write has a fixed cost. */
function* partsOf(body: Body): Generator<Piece> {
  if (isPiece(body)) return yield body;
  let from = 0;
  let length = 0;
  for (let to = 0; to < body.length; to += 1) {
    length += lengthOf(body[to]!);
    if (length < JOINED && to + 1 < body.length) continue;
    yield from === to ? body[from]! : joined(body.slice(from, to + 1), length);
    from = to + 1;
    length = 0;
  }
}

function joined(pieces: readonly Piece[], length: number): Buffer {
  const all = Buffer.allocUnsafe(length);
  let at = 0;
  for (const piece of pieces) {
    if (typeof piece === 'string') at += all.write(piece, at);
    else {
      all.set(piece, at);
      at += piece.length;
    }
  }
  return all;
}

function lengthOf(body: Body): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  if (isPiece(body)) return body.length;
  return body.reduce((sum: number, piece: Piece) => sum + lengthOf(piece), 0);
}

/**
 * Ends the connection of a caller whose body is not read to its end, after the caller could read the answer. Closing a
 * connection while the caller sends resets it, and the unread answer is lost: so the rest of the body is discarded for a
 * while.
 */
async function endUnread(body: Body, { request, response, clock }: NodeAnswering): Promise<void> {
  for (const part of partsOf(body)) response.write(part);
  request.resume();
  const sent = finished(request, { writable: false }).catch(() => undefined);
  await Promise.race([sent, clock.sleep(LINGER_MS)]);
  response.end();
}
