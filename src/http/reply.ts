export const JSON_TYPE = 'application/json; charset=utf-8';

/** The answer to a request before it is written. */
export interface Reply {
  readonly status: number;
  /** Names in lower case. The transport adds `content-length` if it knows it. */
  readonly headers: Readonly<Record<string, string>>;
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
