import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Exchange } from './exchange.ts';
import { isPiece, isStream, type Body, type Piece, type Reply } from './reply.ts';

/** Bytes up to which a body is joined with its head. */
const SMALL = 16 * 1024;
/**
 * The bytes that are written together, because each write has a fixed cost. After them other requests get a turn: one
 * fast reader would otherwise occupy the event loop.
 */
const TURN = 128 * 1024;

/** Writes a reply to a socket. @throws what the body throws, or what is wrong with the reply */
export async function send(
  { status, headers, body = '' }: Reply,
  res: ServerResponse,
  exchange: Pick<Exchange, 'signal'>,
): Promise<void> {
  const isWhole = !isStream(body) && (isPiece(body) || lengthOf(body) <= TURN);
  if (isWhole) await endOfTurn();
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  if (isWhole) return endWith(bytesOf(body), res);
  for await (const part of isStream(body) ? body : inTurns(body)) {
    await nextTurn();
    if (!res.write(bytesOf(part))) await once(res, 'drain', exchange);
  }
  res.end();
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

/**
 * Node joins a small text with the head, but not a buffer: that would be a second part of the write, which costs more. As
 * latin1, a text is written byte by byte.
 */
function endWith(body: Piece, res: ServerResponse): void {
  const { buffer, byteOffset, length } = typeof body === 'string' ? Buffer.from(body) : body;
  const bytes = Buffer.from(buffer, byteOffset, length);
  if (length > SMALL) res.end(bytes);
  else res.end(bytes.toString('latin1'), 'latin1');
}

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

/** Makes the response of a reply for a caller of `fetch`. @param cutOff returns what the caller gets instead of an error */
export function responseOf(
  { status, headers, body = '' }: Reply,
  exchange: Exchange,
  cutOff: (error: unknown) => unknown,
): Response {
  const entries = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  );
  const content = isStream(body) ? readable(body, exchange, cutOff) : bytesOf(body);
  const init = { status, headers: entries };
  return new Response(content === '' ? null : (content as BodyInit), init);
}

/** The exchange continues until the stream is read, cancelled or broken. */
function readable(
  body: AsyncIterable<Body>,
  exchange: Exchange,
  cutOff: (error: unknown) => unknown,
): ReadableStream<Uint8Array> {
  const parts = body[Symbol.asyncIterator]();
  const { signal } = exchange.fetched!;
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await parts.next();
          signal.throwIfAborted();
          if (!done) return controller.enqueue(Buffer.from(bytesOf(value) as Uint8Array));
          exchange.end();
          controller.close();
        } catch (error) {
          const reason: unknown = exchange.hasLeft ? signal.reason : cutOff(error);
          exchange.end();
          throw reason;
        }
      },
      // As if the caller had left: what the stream waits for ends too.
      cancel: () => exchange.leave(),
    },
    { highWaterMark: 0 },
  );
}

export function bytesOf(body: Body): Piece {
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
