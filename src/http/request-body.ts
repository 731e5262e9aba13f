import type { IncomingMessage } from 'node:http';
import type { GraphQLError } from 'graphql';
import type { GraphQLParams } from 'graphql-yoga';
import { codedError } from '../errors.ts';
import { BodyTooLarge, readBody } from '../read-body.ts';

type Body = IncomingMessage | ReadableStream<Uint8Array> | null;

/** @throws GraphQLError for what need not be read to be refused */
export function checkBody(headers: Headers, maxBytes: number): void {
  if (!/^application\/json\s*([;,]|$)/i.test(headers.get('content-type') ?? '')) {
    throw refused(415, 'Send the operation as JSON, with "content-type: application/json".');
  }
  const encoding = headers.get('content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    // RFC 9110, 12.5.3: in an answer it says which encodings of requests are taken.
    throw refused(415, 'Send the body as it is, without a content-encoding.', {
      'accept-encoding': 'identity',
    });
  }
  if (Number(headers.get('content-length')) > maxBytes) throw tooLarge(maxBytes);
}

/**
 * Never holds more than `maxBytes` of the body.
 *
 * @throws GraphQLError for what is too large, or no JSON that an operation could be read from
 */
export async function readJson(body: Body, maxBytes: number): Promise<GraphQLParams> {
  const text = await readText(body, maxBytes);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Without the words of the parser, which have a piece of the body in them.
    throw refused(400, 'The body is no valid JSON.');
  }
  if (typeof json !== 'object' || json === null) {
    throw refused(400, 'The body must be a JSON object with a "query".');
  }
  return json;
}

async function readText(body: Body, maxBytes: number): Promise<string> {
  if (body === null) return '';
  try {
    return await readBody(chunksOf(body), maxBytes);
  } catch (error) {
    if (error instanceof BodyTooLarge) throw tooLarge(maxBytes);
    throw new DOMException('The caller left while sending.', 'AbortError');
  }
}

/** To destroy what Node reads from would close the connection before the caller is told why. */
function chunksOf(body: NonNullable<Body>): AsyncIterable<Uint8Array> {
  if (!('iterator' in body)) return body;
  return body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
}

/** As little is read of an address as of a body. */
export function checkAddress(url: string, maxBytes: number): void {
  if (url.length > maxBytes) {
    throw refused(
      414,
      `An address may have ${maxBytes} characters here. Use POST, or ask for less.`,
    );
  }
}

function tooLarge(maxBytes: number): GraphQLError {
  const message = `A request may have ${maxBytes} bytes here. Send less, with values in variables and not twice, or split it; the operator can raise MAX_BODY_BYTES.`;
  return refused(413, message, { connection: 'close' });
}

function refused(status: number, message: string, headers: Record<string, string> = {}) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status, headers } } });
}
