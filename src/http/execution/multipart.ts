import { writePayload, type Payload } from '../../answers/write-answer.ts';
import type { Body, Reply } from '../exchange/exchange.ts';

/**
 * An answer in parts, as multipart/mixed (RFC 2046, 5.1.3), with a hyphen for its boundary.
 *
 * @param first of the payloads, which was read already
 */
export function multipartReply(
  first: Payload,
  further: AsyncGenerator<Payload, void, undefined>,
  mask: (error: unknown) => Error,
): Reply {
  return {
    status: 200,
    headers: { 'content-type': 'multipart/mixed; boundary="-"' },
    body: parts(first, further, mask),
  };
}

async function* parts(
  first: Payload,
  further: AsyncGenerator<Payload, void, undefined>,
  mask: (error: unknown) => Error,
): AsyncGenerator<Body, void, undefined> {
  try {
    yield part(writePayload(first, mask, !first.hasNext), '\r\n---');
    if (first.hasNext) for await (const payload of further) yield part(writePayload(payload, mask));
    yield '--\r\n';
  } finally {
    await further.return();
  }
}

function part(text: readonly (string | Buffer)[], before = ''): Body {
  const length = text.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return [
    `${before}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n`,
    ...text,
    '\r\n---',
  ];
}
