import type { Socket } from 'node:net';
import { ReadableStream as NodeStream } from 'node:stream/web';
import { setImmediate as nextTurn } from 'node:timers/promises';
// The one of Yoga, which is written without being read as a stream.
import { Response as YogaResponse } from '@whatwg-node/fetch';
import type { ErrorPolicy } from './error-policy.ts';
import type { Exchange, NodeMessages } from './exchange.ts';
import { isPiece, isStream, type Body, type Piece, type Reply } from './reply.ts';

/**
 * Makes the response of a reply, and keeps it in its exchange.
 *
 * @param cutOff ends an answer that has begun
 * @throws whatever is wrong with the reply, before anything of it is sent
 */
export async function respond(
  exchange: Exchange,
  reply: Reply,
  cutOff: ErrorPolicy['cutOff'],
): Promise<Response> {
  exchange.isStreaming = isStream(reply.body);
  if (exchange.node && !exchange.isStreaming) await endOfTurn();
  return (exchange.response = responseOf(reply, exchange, (error) => cutOff(exchange, error)));
}

/**
 * Sends replies that become ready in one turn of the event loop together, in its check phase. Sending wakes a reader's
 * process if it sleeps, and this costs more than anything else about a small reply.
 */
function endOfTurn(): Promise<void> {
  return (turn ??= nextTurn().finally(() => {
    turn = undefined;
  }));
}

/** The turn that is under way. The event loop, and so this, is one for the process. */
let turn: Promise<void> | undefined;

/** Ends an answer that has begun. @returns what a reader through `fetch` gets instead of the error */
type CutOff = (error: unknown) => Error;

function responseOf(reply: Reply, exchange: Exchange, cutOff: CutOff): Response {
  const { node } = exchange;
  const { status, body = '' } = reply;
  const headers = headersOf(reply, exchange);
  if (!node) {
    const content = isStream(body) ? webStream(body, exchange, cutOff) : bytesOf(body);
    return new Response(content === '' ? null : (content as BodyInit), { status, headers });
  }
  const written = (content: Piece | AsyncGenerator<Piece> | null) =>
    new YogaResponse(content as BodyInit, { status, headers });
  if (isStream(body)) return written(overSocket(body, node, cutOff));
  if (status === NO_CONTENT) return written(null);
  if (!isPiece(body) && lengthOf(body) > TURN) {
    return written(overSocket(inTurns(body), node, cutOff));
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
  cutOff: CutOff,
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
      cutOff(error);
      res.destroy();
    }
  })();
}

/** The body of a stream through `fetch`: the exchange continues until it is read, cancelled or broken. */
function webStream(
  body: AsyncIterable<Body>,
  exchange: Exchange,
  cutOff: CutOff,
): NodeStream<Uint8Array> {
  const parts = body[Symbol.asyncIterator]();
  const next = async () => {
    try {
      const { done, value } = await parts.next();
      exchange.fetched!.signal.throwIfAborted();
      if (!done) return { value: Buffer.from(bytesOf(value) as Uint8Array) };
      exchange.end();
      return { done, value: undefined };
    } catch (error) {
      const reason = exchange.hasLeft ? exchange.fetched!.signal.reason : cutOff(error);
      exchange.end();
      throw reason;
    }
  };
  // As if the caller had left: what the stream waits for ends too.
  const cancelled = async () => {
    exchange.leave();
    exchange.end();
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
