export const JSON_TYPE = 'application/json; charset=utf-8';
const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';

/** The answer to a request before it is written. */
export interface Reply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /**
   * Undefined: empty. An iterable is read as fast as the caller reads, and ended when the caller leaves. What it throws
   * is logged, and the answer is cut off.
   */
  readonly body?: Body | AsyncIterable<Body> | undefined;
}

export type Body = Piece | readonly Piece[];
/** A Buffer is a piece too. */
export type Piece = string | Uint8Array;

export function isPiece(body: Body | AsyncIterable<Body>): body is Piece {
  return typeof body === 'string' || body instanceof Uint8Array;
}

export function isStream(body: Reply['body']): body is AsyncIterable<Body> {
  return body !== undefined && !isPiece(body) && !Array.isArray(body);
}

/** Adds the headers that the stages of an exchange have set. Those of the reply take precedence. */
export function withHeaders(added: Readonly<Record<string, string>>, reply: Reply): Reply {
  const headers = { ...added, ...reply.headers };
  const { vary: first } = reply.headers;
  const { vary } = added;
  if (vary && first && !first.includes(vary)) headers['vary'] = `${String(first)}, ${vary}`;
  return { ...reply, headers };
}

/**
 * Reads an `accept` header. Of the two types of JSON, the one that is named first is sent, and `application/json` to
 * callers that name neither. Only a caller that names `multipart/mixed` gets parts: `*\/*` does not show that a client
 * can join them. Quality values are not read, because clients name first what they prefer.
 *
 * @returns the content type of an answer in one piece, and whether an operation with `@stream` is answered in parts
 */
export function accepted(header = '') {
  const ranges = header.toLowerCase().split(',');
  const json = ranges.find((range) => /^ *application\/(graphql-response\+)?json/.test(range));
  return {
    json: json?.includes('graphql-response') ? GRAPHQL_TYPE : JSON_TYPE,
    parts: ranges.some((range) => range.includes('multipart/mixed') && isKnownFormat(range)),
  };
}

/** Some clients, such as urql, send no parameter, and read streamed lists in this format. */
function isKnownFormat(range: string): boolean {
  return !/spec *=/.test(range) || /deferspec *= *"?20220824/.test(range);
}
