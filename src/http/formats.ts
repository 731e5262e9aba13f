import { JSON_TYPE, type Body, type Piece, type Reply } from './reply.ts';

/** How an answer is sent to a caller. */
export interface Accepted {
  /** The content type of an answer in one piece. */
  readonly json: JsonType;
  /** Whether an operation with `@stream` is answered in parts. */
  readonly parts: boolean;
}

const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';
type JsonType = typeof JSON_TYPE | typeof GRAPHQL_TYPE;

const MULTIPART = 'multipart/mixed';
/** The proposal of 2022-08-24, which places each part by its path. */
const PARTS_FORMAT = 'deferSpec=20220824';

/**
 * Reads an `accept` header. Of the two types of JSON, the one that is named first is sent, and `application/json` to
 * callers that name neither. Only a caller that names `multipart/mixed` gets parts: `*\/*` does not show that a client
 * can join them. Quality values are not read, because clients name first what they prefer.
 */
export function accepted(header = ''): Accepted {
  const ranges = header.toLowerCase().split(',');
  const json = ranges.find((range) => /^ *application\/(graphql-response\+)?json/.test(range));
  return {
    json: json?.includes('graphql-response') ? GRAPHQL_TYPE : JSON_TYPE,
    parts: ranges.some((range) => range.includes(MULTIPART) && isKnownFormat(range)),
  };
}

/** Some clients, such as urql, send no parameter, and read streamed lists in this format. */
function isKnownFormat(range: string): boolean {
  return !/spec *=/.test(range) || /deferspec *= *"?20220824/.test(range);
}

/** Makes the reply of an answer in parts (multipart/mixed: RFC 2046, 5.1.3). @param parts each the JSON of a payload */
export function multipartReply(parts: AsyncIterable<readonly Piece[]>): Reply {
  // A hyphen is its boundary.
  const type = `${MULTIPART}; boundary="-"; ${PARTS_FORMAT}`;
  return { status: 200, headers: { 'content-type': type }, body: delimited(parts) };
}

/** Each part with the delimiter after it, for which clients wait before they use the part. */
async function* delimited(
  parts: AsyncIterable<readonly Piece[]>,
): AsyncGenerator<Body, void, undefined> {
  let before = DELIMITER;
  for await (const json of parts) {
    yield [before + HEAD, ...json, DELIMITER];
    before = '';
  }
  // Turns the delimiter after the last part into the closing one.
  yield '--\r\n';
}

const HEAD = '\r\nContent-Type: application/json; charset=utf-8\r\n\r\n';
const DELIMITER = '\r\n---';
