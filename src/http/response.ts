import { validateHeaderValue } from 'node:http';
import { finished } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sendNodeResponse } from '@whatwg-node/server';
import type { FetchAPI } from 'graphql-yoga';
import type { Clock } from '../clock.ts';
import { STALL_MS } from './listen.ts';
import {
  isPiece,
  isStream,
  type Body,
  type Exchange,
  type NodeMessages,
  type Piece,
  type Reply,
} from './exchange.ts';

export interface ResponseParts {
  readonly exchange: Exchange;
  readonly clock: Clock;
  /** Whether a plugin of others sees responses. */
  readonly isSeen: boolean;
  /** Called when a stream was read to its end through `fetch`. */
  readonly onEnd: () => void;
  /** Called with what a stream threw behind its beginning. Returns what a reader through `fetch` gets instead. */
  readonly onBreak: (error: unknown) => Error;
}

/** The size up to which bytes are passed on as a string. */
const SMALL = 16 * 1024;
/** The size up to which pieces are joined, bytes. */
const JOINED = 64 * 1024;
/** The bytes after which other requests get a turn: one fast reader would otherwise occupy the event loop. */
const TURN = 128 * 1024;
/** The longest time from the refusal of a body to the end of its connection, ms. */
const LINGER_MS = 1_000;

/**
 * Makes the response of a reply, which Yoga writes over a socket as fast as the caller reads. Of a stream over a socket,
 * the first part is awaited, so that its failure can still be refused.
 *
 * @param fetchAPI the one of Yoga, whose responses it writes without reading them as streams
 * @throws whatever is wrong with the reply, before anything of it is sent
 */
export function responseOf(
  reply: Reply,
  { Response: YogaResponse }: FetchAPI,
  parts: ResponseParts,
): Response | Promise<Response> {
  const { exchange, clock, isSeen } = parts;
  const { node } = exchange;
  const { status, body = '' } = reply;
  const headers = headersOf(reply, exchange);
  // Node would throw when nobody can answer any more, and not every `Response` throws.
  for (const name in headers) validateHeaderValue(name, headers[name]!);
  if (!node) {
    const content = isStream(body) ? webStream(body, parts) : joinedBytes(body);
    return new Response(hasNoBody(status) ? null : content, { status, headers });
  }
  if (isStream(body)) {
    return begun(body, node).then((rest) =>
      // An empty response is written nowhere: the caller has left.
      rest ? written(guarded(rest, node, parts)) : new YogaResponse(null, { status, headers }),
    );
  }
  const length = lengthOf(body);
  if (!hasNoBody(status)) headers['content-length'] = String(length);
  if (headers['connection'] === 'close' && !node.req.complete) {
    return written(lingering(body, node, clock));
  }
  if (length > JOINED) return written(isPiece(body) ? body : inTurns(partsOf(body)));
  const response: Written = written(isSeen && length > 0 ? bytesOf(body, length) : null);
  response[WHOLE] = { body, length, headers: isSeen ? response.headers : headers };
  return response;

  function written(made: string | Uint8Array | AsyncIterable<Piece> | null): Response {
    return new YogaResponse(made as BodyInit | null, { status, headers });
  }
}

/** A response over a socket. If it is whole: what is written. */
interface Written extends Response {
  [WHOLE]?: {
    readonly body: Body;
    readonly length: number;
    /** Those of the response if somebody sees it, and may change them. */
    readonly headers: Headers | Record<string, string>;
  };
}

const WHOLE = Symbol('whole');

/**
 * Sends a response over a socket, as Yoga does. Yoga writes the body and then its end, which are two parts of one write
 * for Node, and cost much more than one.
 *
 * @throws whatever is wrong with the response
 */
export function send(response: Written, { req, res }: NodeMessages): Promise<void> | undefined {
  const { [WHOLE]: whole } = response;
  if (!whole || res.destroyed || res.writableEnded) {
    return Promise.resolve(sendNodeResponse(response, res, req, true));
  }
  const { body, length, headers } = whole;
  if (isSet(headers)) res.setHeaders(headers).writeHead(response.status, response.statusText);
  else res.writeHead(response.status, headers);
  // Node joins a string with the headers. A buffer would be a second part of the write, which costs more.
  if (length <= SMALL && !isPiece(body)) res.end(latin1Of(body), 'latin1');
  else res.end(bytesOf(body, length));
  return undefined;
}

function isSet(headers: Headers | Record<string, string>): headers is Headers {
  return typeof headers.get === 'function';
}

/** A string with a character for each byte, which Node writes fastest. */
function latin1Of(pieces: readonly Piece[]): string {
  let all = '';
  for (const piece of pieces) {
    const isSame = typeof piece === 'string' && Buffer.byteLength(piece) === piece.length;
    all += isSame ? piece : asBuffer(piece).toString('latin1');
  }
  return all;
}

/** The headers of the reply together with those of the exchange. */
function headersOf({ headers }: Reply, { replyHeaders }: Exchange): Record<string, string> {
  const all = { ...headers, ...replyHeaders };
  // Only who writes a body knows how it is framed, and two ways at once let a proxy lose count (RFC 9112, 6.1).
  delete all['transfer-encoding'];
  delete all['content-length'];
  const { vary } = headers;
  if (vary !== undefined && replyHeaders['vary'] !== undefined) {
    all['vary'] = `${vary}, ${replyHeaders['vary']}`;
  }
  return all;
}

/** Statuses that must not have a body (RFC 9110, 15.3.5 and 15.4.5; for their length, 8.6). */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

function bytesOf(body: Body, length: number): string | Uint8Array {
  return isPiece(body) ? body : joined(body, length);
}

function asBuffer(piece: Piece): Buffer {
  if (typeof piece === 'string') return Buffer.from(piece);
  return Buffer.isBuffer(piece) ? piece : Buffer.from(piece);
}

/** Gives other requests a turn, however fast the reader is. */
async function* inTurns(
  parts: Iterable<Piece> | AsyncIterable<Piece>,
): AsyncGenerator<Piece, void, undefined> {
  let sinceTurn = 0;
  for await (const part of parts) {
    yield part;
    sinceTurn += part.length;
    if (sinceTurn < TURN) continue;
    sinceTurn = 0;
    await nextTurn();
  }
}

type Begun = { readonly first: Body | undefined; readonly rest: AsyncIterator<Body> };

/** Returns undefined if the caller has left meanwhile. */
async function begun(body: AsyncIterable<Body>, { res }: NodeMessages): Promise<Begun | undefined> {
  const rest = body[Symbol.asyncIterator]();
  const { done, value } = await rest.next();
  // Its failure is one of the beginning too.
  if (!done) lengthOf(value);
  if (!res.destroyed) return { first: done ? undefined : value, rest };
  await rest.return?.();
  return undefined;
}

/** The parts of a stream. It never throws: Yoga would only print the error, and leave the connection open. */
async function* guarded(
  begin: Begun,
  { res }: NodeMessages,
  { onBreak }: ResponseParts,
): AsyncGenerator<Piece, void, undefined> {
  try {
    yield* inTurns(allParts(begin));
  } catch (error) {
    onBreak(error);
    res.destroy();
  } finally {
    await begin.rest.return?.();
  }
}

async function* allParts({ first, rest }: Begun): AsyncGenerator<Piece, void, undefined> {
  if (first !== undefined) yield* partsOf(first);
  for (;;) {
    const { done, value } = await rest.next();
    if (done) return;
    yield* partsOf(value);
  }
}

/**
 * Ends the connection of a caller whose body is not read to its end, after the caller could read the answer. Closing a
 * connection while the caller sends resets it, and the unread answer is lost: so the rest of the body is discarded for a
 * while.
 */
async function* lingering(
  body: Body,
  { req }: NodeMessages,
  clock: Clock,
): AsyncGenerator<Piece, void, undefined> {
  yield* partsOf(body);
  req.resume();
  const sent = finished(req, { writable: false }).catch(() => undefined);
  await Promise.race([sent, clock.sleep(LINGER_MS)]);
}

/** Joins small pieces: each write has a fixed cost. */
function* partsOf(body: Body): Generator<Piece> {
  if (isPiece(body)) return body.length > 0 ? yield body : undefined;
  let from = 0;
  let length = 0;
  for (let to = 0; to < body.length; to += 1) {
    length += lengthOf(body[to]!);
    if (length < JOINED && to + 1 < body.length) continue;
    const part = from === to ? body[from]! : joined(body.slice(from, to + 1), length);
    if (part.length > 0) yield part;
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

function joinedBytes(body: Body): Buffer<ArrayBuffer> {
  if (isPiece(body)) return Buffer.from(body as Uint8Array);
  return Buffer.concat(body.map((piece: Piece) => Buffer.from(piece as Uint8Array)));
}

/** The body of a stream through `fetch`: the exchange goes on until it is read, cancelled or broken. */
function webStream(
  body: AsyncIterable<Body>,
  { exchange, clock, onEnd, onBreak }: ResponseParts,
): ReadableStream<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  const over = new AbortController();
  /** By `clock.elapsed`; undefined while the next part is being made. */
  let unreadSince: number | undefined = clock.elapsed();

  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        exchange.onLeave(() => {
          if (exchange.hasLeft) stop(controller, exchange.leftBecause ?? unread());
        });
        endUnread().catch(() => {});
      },
      pull: async (controller) => {
        unreadSince = undefined;
        try {
          const { done, value } = await iterator.next();
          if (over.signal.aborted) return;
          if (!done) return controller.enqueue(joinedBytes(value));
          over.abort();
          controller.close();
          onEnd();
        } catch (error) {
          const shown = onBreak(error);
          stop(controller, shown);
        } finally {
          unreadSince = clock.elapsed();
        }
      },
      cancel: async () => {
        over.abort();
        // Before its first part is read, `return` alone would not even begin the iterator, and so end nothing.
        exchange.leave();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );

  function stop(controller: ReadableStreamDefaultController, error: unknown): void {
    if (over.signal.aborted) return;
    over.abort();
    controller.error(error);
    iterator.return?.().catch(() => {});
  }

  /** Ends a stream that nobody reads: what it holds would be held for ever. Rejects when the stream is over. */
  async function endUnread(): Promise<void> {
    for (;;) {
      const now = clock.elapsed();
      const left = (unreadSince ?? now) + STALL_MS - now;
      if (left <= 0) return exchange.leave();
      await clock.sleep(left, over.signal);
    }
  }
}

function unread(): DOMException {
  return new DOMException(
    `The answer was ended because nobody read it for ${STALL_MS / 1000} s. Send the request again.`,
    'AbortError',
  );
}
