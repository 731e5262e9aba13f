import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { badRequest, codedError } from '../errors.ts';
import { BodiesTooLarge, BodyParts, BodyTooLarge, type BodyLimits } from '../memory/byte-limit.ts';
import { CALLER_LEFT, type Exchange } from './exchange.ts';
import type { TakeTurn } from './loop-turns.ts';

/**
 * Reads the body of a request, once.
 *
 * @param takeTurn called when all of it has arrived; a body that waits for its turn counts as arriving
 * @throws BodyTooLarge, BodiesTooLarge; BAD_USER_INPUT if it is not UTF-8 or cannot be read; AbortError if the caller
 * leaves
 */
export async function readText(
  exchange: Exchange,
  limits: BodyLimits,
  takeTurn: TakeTurn,
): Promise<string> {
  const { node, fetched } = exchange.inbound;
  const parts = new BodyParts(limits);
  try {
    if (node) await arrived(node.req, exchange, parts);
    else if (fetched?.body) await fetchedInto(parts, fetched.body, exchange);
    const turn = takeTurn();
    if (turn) await turn;
    if (exchange.hasLeft) throw CALLER_LEFT;
    const bytes = parts.bytes();
    if (!isUtf8(bytes)) throw badRequest(NOT_UTF8);
    const text = bytes.toString();
    // The byte order mark that some clients send before their JSON.
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  } finally {
    parts.drop();
  }
}

/** By events, because the iterator of a stream costs more than everything else about a small body. */
function arrived(req: IncomingMessage, exchange: Exchange, parts: BodyParts): Promise<void> {
  // It would never end a second time.
  if (req.readableEnded) return Promise.reject(badRequest(READ_BEFORE));
  return new Promise((resolve, reject) => {
    const stop = (reason: unknown) => {
      req.off('data', onData).off('end', onEnd).pause();
      exchange.offLeave(onLeave);
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
      // These listeners would keep the body alive as long as the request.
      req.off('data', onData).off('end', onEnd);
      exchange.offLeave(onLeave);
      resolve();
    };
    const onLeave = () => stop(CALLER_LEFT);
    req.on('data', onData).on('end', onEnd);
    exchange.onLeave(onLeave);
  });
}

async function fetchedInto(
  parts: BodyParts,
  body: AsyncIterable<Uint8Array>,
  exchange: Exchange,
): Promise<void> {
  try {
    for await (const part of body) parts.add(part);
  } catch (error) {
    if (error instanceof BodyTooLarge || error instanceof BodiesTooLarge) throw error;
    if (exchange.hasLeft) throw CALLER_LEFT;
    throw codedError('BAD_USER_INPUT', UNREADABLE, { cause: error });
  }
}

const NOT_UTF8 =
  'The body is not valid UTF-8. Send JSON in UTF-8, as every JSON library writes it.';
const READ_BEFORE =
  'Something in front of the gateway has read the body of this request. Whoever runs it mounts the gateway before body parsers.';
const UNREADABLE =
  'The body could not be read to its end. Send it again, in a stream of bytes that was not read before.';
