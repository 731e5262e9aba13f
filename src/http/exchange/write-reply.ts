import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { finished } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import { isPiece, isPieces, type Body, type Piece, type Reply } from './exchange.ts';

export interface NodeAnswering {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly clock: Clock;
}

/** Pieces are joined up to this, bytes. */
const JOINED = 64 * 1024;
/** After this, others have their turn: a reader that is fast enough would keep the loop to itself. Bytes. */
const TURN = 128 * 1024;
/** Between the refusal of a body and the end of its connection, at most, ms. */
const LINGER_MS = 1_000;

/**
 * Writes an answer as fast as the caller reads it. It returns no promise for one that is written at once.
 *
 * @param headers all of them; `content-length` is added
 */
export function writeReply(
  { status, body = '' }: Reply,
  headers: Record<string, string>,
  answering: NodeAnswering,
): Promise<void> | undefined {
  const { request, response } = answering;
  if (response.destroyed) return undefined;
  if (!isPiece(body) && !isPieces(body)) {
    response.writeHead(status, headers);
    return writeBodies(body, response);
  }
  const length = lengthOf(body);
  // RFC 9110, 8.6: neither of these has a body.
  if (status !== 204 && status !== 304) headers['content-length'] = String(length);
  response.writeHead(status, headers);
  if (status === 413 && !request.complete) return endUnread(body, answering);
  if (length === 0) response.end();
  else if (isPiece(body)) response.end(body);
  else if (length <= JOINED) response.end(joined(body, length));
  else return writeBodies([body], response);
  return undefined;
}

async function writeBodies(
  bodies: Iterable<Body> | AsyncIterable<Body>,
  response: ServerResponse,
): Promise<void> {
  const closed = new AbortController();
  const onClose = () => closed.abort();
  response.once('close', onClose);
  let sinceTurn = 0;
  try {
    for await (const body of bodies) {
      for (const part of partsOf(body)) {
        if (response.destroyed) return;
        sinceTurn += part.length;
        if (!response.write(part)) await drained(response, closed.signal);
        if (sinceTurn < TURN) continue;
        sinceTurn = 0;
        await nextTurn();
      }
      if (response.destroyed) return;
    }
    response.end();
  } finally {
    response.off('close', onClose);
  }
}

async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  // It rejects when the connection has ended, which `destroyed` says as well.
  await once(response, 'drain', { signal }).catch(() => undefined);
}

/** Small pieces are joined, so that each write is worth its cost. */
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
 * Lets the caller read that the body is too large. To close a connection while somebody sends makes the system
 * reset it, and what was not read there yet is lost: so what still comes is dropped for a while before.
 */
async function endUnread(body: Body, { request, response, clock }: NodeAnswering): Promise<void> {
  for (const part of partsOf(body)) response.write(part);
  request.resume();
  const sent = finished(request, { writable: false }).catch(() => undefined);
  await Promise.race([sent, clock.sleep(LINGER_MS)]);
  response.end();
}
