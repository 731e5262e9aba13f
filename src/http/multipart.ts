import { MULTIPART, PARTS_FORMAT, type Accepted } from './accept.ts';
import type { Body, Piece, Reply } from './reply.ts';

/** Makes the reply of an answer in parts (multipart/mixed: RFC 2046, 5.1.3). @param parts each the JSON of a payload */
export function multipartReply(parts: AsyncIterable<readonly Piece[]>): Reply {
  return replyOf('known', delimited(parts));
}

/** Makes the reply of an answer that is a single part. */
export function onePartReply(accepts: Accepted['parts'], json: readonly Piece[]): Reply {
  return replyOf(accepts, [DELIMITER, ...partOf(json), LAST]);
}

function replyOf(accepts: Accepted['parts'], body: Reply['body']): Reply {
  // A hyphen is its boundary.
  const type = `${MULTIPART}; boundary="-"${accepts === 'known' ? `; ${PARTS_FORMAT}` : ''}`;
  return { status: 200, headers: { 'content-type': type }, body };
}

async function* delimited(
  parts: AsyncIterable<readonly Piece[]>,
): AsyncGenerator<Body, void, undefined> {
  let before = [DELIMITER];
  for await (const json of parts) {
    yield [...before, ...partOf(json)];
    before = [];
  }
  yield LAST;
}

/** A part with the delimiter after it, for which clients wait before they use the part. */
function partOf(json: readonly Piece[]): readonly Piece[] {
  const length = json.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return [
    `\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n`,
    ...json,
    DELIMITER,
  ];
}

const DELIMITER = '\r\n---';
/** Turns the delimiter after the last part into the closing one. */
const LAST = '--\r\n';
