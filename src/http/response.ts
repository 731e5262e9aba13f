import type { Socket } from 'node:net';
import { finished } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FetchAPI } from 'graphql-yoga';
import type { Clock } from '../clock.ts';
import type { Exchange } from './exchange.ts';
import type { NodeMessages } from './inbound.ts';
import { isPiece, isStream, type Body, type Piece, type Reply } from './reply.ts';

/** What the response of a reply needs of its request. */
export interface Sending {
  readonly exchange: Exchange;
  /** The one of Yoga, whose responses are written without being read as streams. */
  readonly fetchAPI: Pick<FetchAPI, 'Response'>;
  readonly clock: Clock;
  /** Ends an answer that has begun. @returns what a reader through `fetch` gets instead of the error */
  readonly cutOff: (error: unknown) => Error;
}

/**
 * Makes the response of a reply.
 *
 * @throws whatever is wrong with the reply, before anything of it is sent
 */
export function responseOf(reply: Reply, sending: Sending): Response {
  const { exchange, fetchAPI, clock } = sending;
  const { node } = exchange.inbound;
  const { status, body = '' } = reply;
  const headers = headersOf(reply, exchange);
  if (!node) {
    const content = isStream(body) ? webStream(body, sending) : bytesOf(body);
    const isEmpty = hasNoBody(status) || content === '';
    return new Response(isEmpty ? null : (content as BodyInit), { status, headers });
  }
  const written = (content: Piece | AsyncGenerator<Piece>) => {
    const read = isPiece(content) ? content : timed(content, node);
    return new fetchAPI.Response(read as BodyInit, { status, headers });
  };
  if (isStream(body)) return written(guarded(body, node, sending));
  if (hasNoBody(status)) return new fetchAPI.Response(null, { status, headers });
  const length = lengthOf(body);
  headers['content-length'] = String(length);
  if (headers['connection'] === 'close' && !node.req.complete) {
    return written(lingering(bytesOf(body), node, clock));
  }
  return written(isPiece(body) || length <= JOINED ? bytesOf(body) : inTurns(body));
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

/** Statuses that must not have a body (RFC 9110, 15.3.5 and 15.4.5; for their length, 8.6). */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

/** The size up to which pieces are joined, bytes: each write has a fixed cost. */
const JOINED = 64 * 1024;
/** The bytes after which other requests get a turn: one fast reader would otherwise occupy the event loop. */
const TURN = 128 * 1024;

async function* inTurns(pieces: readonly Piece[]): AsyncGenerator<Piece, void, undefined> {
  let from = 0;
  let length = 0;
  let sinceTurn = 0;
  for (const [at, piece] of pieces.entries()) {
    length += piece.length;
    if (length < JOINED && at + 1 < pieces.length) continue;
    yield bytesOf(pieces.slice(from, at + 1));
    sinceTurn += length;
    from = at + 1;
    length = 0;
    if (sinceTurn < TURN) continue;
    sinceTurn = 0;
    await nextTurn();
  }
}

/** Switches the time limit for readers on again, which the adapter of Yoga switches off before it reads a stream. */
function timed(parts: AsyncGenerator<Piece>, { req }: NodeMessages) {
  // Programs that imitate requests may have other streams.
  const socket: Partial<Pick<Socket, 'timeout' | 'setTimeout'>> = req.socket;
  const { timeout = 0 } = socket;
  return (async function* () {
    socket.setTimeout?.(timeout);
    yield* parts;
  })();
}

/** The parts of a stream over a socket. It never throws: Yoga would only print the error. */
async function* guarded(
  body: AsyncIterable<Body>,
  { res }: NodeMessages,
  sending: Sending,
): AsyncGenerator<Piece, void, undefined> {
  const parts = body[Symbol.asyncIterator]();
  // Yoga waits for the reader, and hears nothing of its leaving.
  sending.exchange.onEnd(() => void parts.return?.().catch(() => {}));
  try {
    for (let part = await parts.next(); part.done !== true; part = await parts.next()) {
      yield bytesOf(part.value);
      await nextTurn();
    }
  } catch (error) {
    sending.cutOff(error);
    res.destroy();
  }
}

/** The longest time from the refusal of a body to the end of its connection, ms. */
const LINGER_MS = 1_000;

/**
 * Ends the connection of a caller whose body is not read to its end, after the caller could read the answer. Closing a
 * connection while the caller sends resets it, and the unread answer is lost: so the rest of the body is discarded for a
 * while.
 */
async function* lingering(
  body: Piece,
  { req }: NodeMessages,
  clock: Clock,
): AsyncGenerator<Piece, void, undefined> {
  yield body;
  req.resume();
  const sent = finished(req, { writable: false }).catch(() => undefined);
  await Promise.race([sent, clock.sleep(LINGER_MS)]);
}

/** The body of a stream through `fetch`: the exchange continues until it is read, cancelled or broken. */
function webStream(body: AsyncIterable<Body>, sending: Sending): ReadableStream<Uint8Array> {
  const { exchange } = sending;
  const parts = body[Symbol.asyncIterator]();
  const end = () => {
    exchange.end();
    parts.return?.().catch(() => {});
  };
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        exchange.onLeave(() => {
          if (exchange.hasLeft) controller.error(exchange.inbound.fetched?.signal.reason);
          end();
        });
      },
      pull: async (controller) => {
        try {
          const { done, value } = await parts.next();
          if (exchange.hasLeft) return;
          if (!done) return controller.enqueue(Buffer.from(bytesOf(value) as Uint8Array));
          controller.close();
          end();
        } catch (error) {
          controller.error(sending.cutOff(error));
        }
      },
      // As if the caller had left: what the stream waits for ends too.
      cancel: () => exchange.leave(),
    },
    { highWaterMark: 0 },
  );
}

function bytesOf(body: Body): Piece {
  if (isPiece(body)) return body;
  if (body.length === 1 && isPiece(body[0]!)) return body[0];
  return Buffer.concat(
    body.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)),
  );
}

function lengthOf(body: Body): number {
  if (isPiece(body)) return Buffer.byteLength(body);
  return body.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
}
