import { writeAnswer, type ShowError } from '../engine/answer.ts';
import type { Increment, Payload } from '../engine/stream.ts';
import type { Body, Piece, Reply } from './reply.ts';

/**
 * Makes the reply of an answer in parts (multipart/mixed: RFC 2046, 5.1.3), in the format of the proposal of
 * 2022-08-24, which places each part by its path.
 *
 * @param first awaited before the reply begins, so that its failure still refuses the request
 */
export function multipartReply(
  first: Payload,
  others: AsyncGenerator<Payload, void, undefined>,
  show: ShowError,
): Reply {
  // A hyphen is its boundary.
  const type = 'multipart/mixed; boundary="-"; deferSpec=20220824';
  return { status: 200, headers: { 'content-type': type }, body: delimited(first, others, show) };
}

/** Each part with the delimiter after it, for which clients wait before they use the part. */
async function* delimited(
  first: Payload,
  others: AsyncGenerator<Payload, void, undefined>,
  show: ShowError,
): AsyncGenerator<Body, void, undefined> {
  const part = (payload: Payload) => [HEAD, ...writePayload(payload, show), DELIMITER];
  yield [DELIMITER, ...part(first)];
  for await (const payload of others) yield part(payload);
  // Turns the delimiter after the last part into the closing one.
  yield '--\r\n';
}

const HEAD = '\r\nContent-Type: application/json; charset=utf-8\r\n\r\n';
const DELIMITER = '\r\n---';

function writePayload({ first, increment, hasNext }: Payload, show: ShowError): Piece[] {
  if (first) return writeAnswer(first, show, ',"hasNext":true');
  const end = `"hasNext":${hasNext}}`;
  return increment
    ? ['{"incremental":[', ...writeIncrement(increment, show), `],${end}`]
    : [`{${end}`];
}

function writeIncrement({ items, errors, ...members }: Increment, show: ShowError): Piece[] {
  const failed = errors.length > 0 && { errors: errors.map(show) };
  const rest = JSON.stringify({ ...members, ...failed }).slice(1);
  return items ? ['{"items":[', ...items, `],${rest}`] : [`{"items":null,${rest}`];
}
