import type { Socket } from 'node:net';
import { ReadableStream as NodeStream } from 'node:stream/web';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FetchAPI } from 'graphql-yoga';
import type { Exchange } from './exchange.ts';
import type { NodeMessages } from './inbound.ts';
import { isPiece, isStream, type Body, type Piece, type Reply } from './reply.ts';

/** What the response of a reply needs of its request. */
export interface Sending {
  readonly exchange: Exchange;
  /** The one of Yoga, whose responses are written without being read as streams. */
  readonly fetchAPI: Pick<FetchAPI, 'Response'>;
  /** Ends an answer that has begun. @returns what a reader through `fetch` gets instead of the error */
  cutOff(error: unknown): Error;
}

/**
 * Makes the response of a reply.
 *
 * @throws whatever is wrong with the reply, before anything of it is sent
 */
export function responseOf(reply: Reply, sending: Sending): Response {
  const { exchange, fetchAPI } = sending;
  const { node } = exchange.inbound;
  const { status, body = '' } = reply;
  const headers = headersOf(reply, exchange);
  if (!node) {
    const content = isStream(body) ? webStream(body, sending) : bytesOf(body);
    const isEmpty = status === NO_CONTENT || content === '';
    return new Response(isEmpty ? null : (content as BodyInit), { status, headers });
  }
  const written = (content: Piece | AsyncGenerator<Piece> | null) =>
    new fetchAPI.Response(content as BodyInit, { status, headers });
  if (isStream(body)) return written(overSocket(body, node, sending));
  if (status === NO_CONTENT) return written(null);
  if (!isPiece(body) && lengthOf(body) > TURN) {
    headers['content-length'] = String(
      body.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0),
    );
    return written(overSocket(inTurns(body), node, sending));
  }
  // The bytes of a text would be counted here, by Yoga and by Node.
  const content = bytesOf(body);
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  headers['content-length'] = String(bytes.length);
  return written(bytes);
}

/** Joins the headers of the reply and of the exchange. */
function headersOf({ headers }: Reply, { replyHeaders }: Exchange): Record<string, string> {
  const all = { ...headers, ...replyHeaders };
  // Only the writer of a body knows its framing, and two framings at once confuse proxies (RFC 9112, 6.1).
  delete all['transfer-encoding'];
  delete all['content-length'];
  const { vary } = headers;
  if (vary !== undefined && replyHeaders['vary'] !== undefined) {
    all['vary'] = `${vary}, ${replyHeaders['vary']}`;
  }
  return all;
}

/** An answer that must have neither a body nor its length (RFC 9110, 15.3.5 and 8.6). */
const NO_CONTENT = 204;

/**
 * The bytes that are written together, because each write has a fixed cost. After them other requests get a turn: one
 * fast reader would otherwise occupy the event loop.
 */
const TURN = 128 * 1024;

async function* inTurns(pieces: readonly Piece[]): AsyncGenerator<Body, void, undefined> {
  let from = 0;
  let length = 0;
  for (const [at, piece] of pieces.entries()) {
    length += piece.length;
    if (length < TURN && at + 1 < pieces.length) continue;
    yield pieces.slice(from, at + 1);
    from = at + 1;
    length = 0;
  }
}

/** The parts of a body, with turns for other requests between them. It never throws: Yoga would only print the error. */
function overSocket(
  body: AsyncIterable<Body>,
  { req, res }: NodeMessages,
  sending: Sending,
): AsyncGenerator<Piece, void, undefined> {
  // Programs that imitate requests may have other streams than sockets.
  const socket: Partial<Pick<Socket, 'timeout' | 'setTimeout'>> = req.socket;
  const { timeout = 0 } = socket;
  return (async function* () {
    // The adapter of Yoga has switched the time limit for readers off.
    socket.setTimeout?.(timeout);
    try {
      for await (const part of body) {
        await nextTurn();
        yield bytesOf(part);
      }
    } catch (error) {
      sending.cutOff(error);
      res.destroy();
    }
  })();
}

/** The body of a stream through `fetch`: the exchange continues until it is read, cancelled or broken. */
function webStream(body: AsyncIterable<Body>, sending: Sending): NodeStream<Uint8Array> {
  const { exchange } = sending;
  const parts = body[Symbol.asyncIterator]();
  const next = async () => {
    try {
      const { done, value } = await parts.next();
      exchange.inbound.fetched!.signal.throwIfAborted();
      if (!done) return { value: Buffer.from(bytesOf(value) as Uint8Array) };
      exchange.end();
      return { done, value: undefined };
    } catch (error) {
      throw exchange.hasLeft ? exchange.inbound.fetched!.signal.reason : sending.cutOff(error);
    }
  };
  // As if the caller had left: what the stream waits for ends too.
  const cancelled = async () => {
    exchange.leave();
    return { done: true as const, value: undefined };
  };
  return NodeStream.from<Uint8Array>({
    [Symbol.asyncIterator]: () => ({ next, return: cancelled }),
  });
}

function bytesOf(body: Body): Piece {
  if (isPiece(body)) return body;
  if (body.length === 1 && isPiece(body[0]!)) return body[0];
  return Buffer.concat(
    body.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)),
  );
}

/** Characters of texts, and bytes. */
function lengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}
