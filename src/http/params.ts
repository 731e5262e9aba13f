import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { GraphQLError } from 'graphql';
import { badRequest, codedError } from '../errors.ts';
import { BodyParts, noRoom, type ByteLimit } from '../memory/byte-limit.ts';
import { parseSent } from '../operations/variables.ts';
import { CALLER_LEFT, type Exchange } from './exchange.ts';
import type { Params } from './operation.ts';

interface ParamsParts {
  readonly maxBodyBytes: number;
  /** The most requests that have arrived and are not yet answered. */
  readonly maxRequests: number;
  /** Counts their bodies until they are answered. */
  readonly bodies: ByteLimit;
}

/**
 * Reads the parameters from a JSON body, or from the address of a GET. Forms are not accepted: a page of any site can
 * make a browser send one, even with a mutation, without the preflight that CORS requires for JSON.
 */
export function createReadParams({ maxBodyBytes, maxRequests, bodies }: ParamsParts) {
  let inFlight = 0;
  const enter = (exchange: Exchange): void => {
    // One that is refused counts too: its refusal may wait for a reader.
    inFlight += 1;
    exchange.onEnd(() => (inFlight -= 1));
    if (inFlight > maxRequests) throw noRoom();
  };

  return async (exchange: Exchange): Promise<Params> => {
    if (exchange.method === 'POST') {
      checkType(exchange.header('content-type') ?? '');
      const text = await readText(exchange, { maxBodyBytes, bodies });
      enter(exchange);
      return paramsIn(text);
    }
    enter(exchange);
    return paramsInAddress(exchange.query);
  };
}

/** @throws GraphQLError for another type than JSON in UTF-8 */
function checkType(type: string): void {
  const isJson = /^application\/json\s*([;,]|$)/i.test(type);
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s";,]*)/i.exec(type) ?? [];
  if (isJson && /^utf-?8$/i.test(charset)) return;
  throw codedError('BAD_USER_INPUT', OTHER_TYPE, { extensions: { http: { status: 415 } } });
}

async function readText(
  exchange: Exchange,
  { maxBodyBytes, bodies }: Pick<ParamsParts, 'maxBodyBytes' | 'bodies'>,
): Promise<string> {
  const { node, fetched } = exchange;
  const parts = new BodyParts(maxBodyBytes, bodies);
  try {
    if (node) await arrived(node.req, parts);
    else for await (const part of fetched?.body ?? []) parts.add(part);
    const { bytes } = parts;
    if (!isUtf8(bytes)) throw badRequest(NOT_UTF8);
    const { size } = parts;
    // Its values are kept, and take more than their text, until the operation is answered.
    exchange.onEnd(() => bodies.remove(size));
    return bytes.toString();
  } catch (error) {
    bodies.remove(parts.size);
    throw error;
  }
}

/** By events, because the iterator of a stream costs more than everything else about a small body. */
function arrived(req: IncomingMessage, parts: BodyParts): Promise<void> {
  // It would never end a second time.
  if (req.readableEnded) return Promise.reject(badRequest(READ_BEFORE));
  return new Promise((resolve, reject) => {
    const onData = (part: Buffer) => {
      try {
        parts.add(part);
      } catch (error) {
        // The rest of the body is discarded as it arrives. A connection that is closed while the caller sends is reset,
        // and the answer may be lost.
        req.off('data', onData).resume();
        reject(error);
      }
    };
    req.on('data', onData).on('end', resolve);
    // If it has not ended, its caller has left.
    req.on('close', () => reject(CALLER_LEFT));
  });
}

function paramsIn(text: string): Params {
  // Not with the message of the parser, which contains a piece of the body.
  const json = parsed(text, 'The body is not valid JSON. Send a JSON object with a "query".');
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw badRequest(NO_OBJECT);
  }
  return json as Params;
}

function paramsInAddress(query: string): Params {
  const params = new URLSearchParams(query);
  const text = (name: string) => params.get(name) || undefined;
  const json = (name: string) => parsed(text(name) ?? 'null', BROKEN_ADDRESS);
  return {
    operationName: text('operationName'),
    query: text('query'),
    documentId: text('documentId'),
    variables: json('variables'),
    extensions: json('extensions'),
  };
}

function parsed(text: string, otherwise: string): unknown {
  try {
    return parseSent(text);
  } catch (error) {
    if (error instanceof GraphQLError) throw error;
    throw badRequest(otherwise);
  }
}

const OTHER_TYPE =
  'The content-type of this request is not supported. Send the operation as JSON in UTF-8, with "content-type: application/json".';
const NOT_UTF8 =
  'The body is not valid UTF-8. Send JSON in UTF-8, as every JSON library writes it, and not compressed.';
const READ_BEFORE =
  'Something in front of the gateway has read the body of this request. Whoever runs it mounts the gateway before body parsers.';
const NO_OBJECT =
  'The body is not a JSON object with a "query". Batching is off: send each operation in its own request.';
const BROKEN_ADDRESS =
  'The variables or the extensions in the address are not valid JSON. Correct them, or use POST.';
