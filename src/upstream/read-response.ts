import { isUtf8 } from 'node:buffer';
import type { GraphQLError } from 'graphql';
import { codedError, OperatorError, PerhapsTooBig } from '../errors.ts';
import { jsonIn, MAX_LEVELS, withoutSpace, type Json } from '../json.ts';
import { STEP, type Pausable } from '../pausable.ts';
import { parseRetryAfter, type AnswerReader } from '../service/request.ts';

/** The meaning of one HTTP answer of the service, or of a missing answer. */
export type UpstreamAnswer = UpstreamResult | UpstreamFailure | TokenRefusal;

/** An answer without a result. */
interface Unusable {
  /** The service's id of the request, if callers may see it. */
  readonly requestId?: string | undefined;
}

export interface UpstreamResult {
  readonly kind: 'result';
  /**
   * The value that the request's reader made of the answer. Shared by all callers of the request: it must not be
   * changed.
   */
  readonly value: unknown;
  /** The answer itself, as JSON. */
  readonly answer: Buffer;
  readonly hasErrors: boolean;
  readonly readAs: ReadAs;
}

/** `scanned`: by the scanner, because the answer has the expected form; `general`: value by value, which costs more. */
export type ReadAs = 'scanned' | 'general';

export interface UpstreamFailure extends Unusable {
  readonly kind: 'failure';
  readonly error: GraphQLError;
  /** Whether the request may succeed when it is sent again. */
  readonly isTemporary: boolean;
  /** The least wait before that, if the service stated one, ms; negative for a time in the past. */
  readonly retryAfterMs?: number | undefined;
  /** The GraphQL result that came with a 5xx status: callers get it if no attempt brings a better one. */
  readonly result?: UpstreamResult;
}

/** The service refused the token. After a 401, a newer one may help; otherwise it is a failure: see `unauthorized`. */
interface TokenRefusal extends Unusable {
  readonly kind: 'unauthorized';
  readonly status: 401 | 403;
  readonly detail: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Takes hardly more memory than its bytes; undefined if the body was larger than MAX_RESPONSE_BYTES. */
  readonly body: Buffer | undefined;
}

const MEGABYTE = 1024 * 1024;
/** The largest body, counted while it arrives: all of it is in memory before any of it can be used. */
export const MAX_RESPONSE_BYTES = 64 * MEGABYTE;

/**
 * Reads an answer of the GraphQL endpoint. The service documents only the body of a 401 (interface, 2.2), so all other
 * answers are judged by their shape: a JSON object with `data` or a list of `errors` is GraphQL, whatever its status.
 * Other answers are not, and their text is not passed on.
 *
 * @param facts `token`: the token that the request was sent with. It is removed from everything that is passed on to
 *   callers and to logs. One that is written with JSON escapes is not recognized: access tokens need none.
 */
export function* readResponse(
  { status, headers, body }: HttpAnswer,
  { token, now, request }: { token: string; now: () => number; request: AnswerReader<unknown> },
): Pausable<UpstreamAnswer> {
  if (!body) {
    return unusable(
      `it is larger than ${MAX_RESPONSE_BYTES / MEGABYTE} MB. Request fewer records or fields at a time.`,
      new PerhapsTooBig(true),
    );
  }
  // Never decompressed, so that a small answer cannot become a large one. For 429 and 5xx the status is enough.
  if (isCompressed(headers) && status < 500 && status !== 429) {
    return misconfigured(
      'it is compressed, which the gateway does not accept. Turn off compression in the proxy in front of the service.',
    );
  }
  let bytes = isUtf8(body) && body[0] !== BYTE_ORDER_MARK ? body : yield* repaired(body);
  if (yield* isTokenIn(bytes, token)) bytes = withoutToken(bytes, token);
  if (status === 200 && request.scan) {
    let value = yield* request.scan(bytes);
    if (value === undefined) {
      // A service that indents its JSON need not be read value by value.
      const compact = yield* withoutSpace(bytes);
      if (compact !== bytes) value = yield* request.scan((bytes = compact));
    }
    if (value !== undefined) {
      return { kind: 'result', value, answer: bytes, hasErrors: false, readAs: 'scanned' };
    }
  }
  const json = yield* jsonIn(bytes);
  if (json === 'too deep') return unusable(`it is nested more than ${MAX_LEVELS} levels deep.`);
  if (status === 401 || status === 403) {
    return { kind: 'unauthorized', status, detail: json?.get('detail')?.string ?? '' };
  }
  if (status === 429) return rateLimited(parseRetryAfter(headers['retry-after'], now()));
  const result = json && isGraphQL(json) ? yield* resultOf(json, status, request) : undefined;
  if (status >= 500) {
    return {
      ...unusable(
        `it has status ${status}. Try again later.`,
        MAY_BE_OF_SIZE.has(status) ? new PerhapsTooBig(false) : undefined,
      ),
      isTemporary: true,
      ...(result && { result }),
    };
  }
  if (result) return result;
  if (status === 413) {
    return unusable(
      'it has status 413, which says that too much was requested. Request fewer records or fields at a time.',
      new PerhapsTooBig(true),
    );
  }
  if (status >= 300 && status < 400) {
    return misconfigured(`it is a redirect (${status}). Check RECRUITING_URL.`);
  }
  return misconfigured(`it is not GraphQL JSON (status ${status}). Check RECRUITING_URL.`);
}

/** The statuses with which a proxy reports an answer that took too long, but also a service that is down. */
const MAY_BE_OF_SIZE: ReadonlySet<number> = new Set([502, 504]);

function* resultOf(
  json: Json,
  status: number,
  request: AnswerReader<unknown>,
): Pausable<UpstreamResult> {
  return {
    kind: 'result',
    value: yield* request.read(json, status),
    answer: json.bytes,
    hasErrors: json.get('errors')?.isEmpty === false,
    readAs: 'general',
  };
}

function isGraphQL(json: Json): boolean {
  const [data, errors] = [json.get('data'), json.get('errors')];
  if (data && data.kind !== 'object' && !data.isNull) return false;
  if (errors && errors.kind !== 'list' && !errors.isNull) return false;
  return data !== undefined || errors?.isEmpty === false;
}

function isCompressed(headers: HttpAnswer['headers']): boolean {
  const encoding = headers['content-encoding'] ?? '';
  return encoding !== '' && String(encoding).toLowerCase() !== 'identity';
}

/** @param why completes `UNUSABLE`, and says what to do */
function unusable(why: string, cause?: PerhapsTooBig): UpstreamFailure {
  return {
    kind: 'failure',
    isTemporary: false,
    error: codedError('UPSTREAM_BAD_RESPONSE', `${UNUSABLE} ${why}`, { cause }),
  };
}

/** @param retryAfter seconds; negative for a date in the past, undefined if the service stated none */
function rateLimited(retryAfter: number | undefined): UpstreamFailure {
  const seconds = retryAfter === undefined ? null : Math.max(1, Math.ceil(retryAfter));
  return {
    kind: 'failure',
    isTemporary: true,
    retryAfterMs: retryAfter && retryAfter * 1000,
    error: codedError(
      'UPSTREAM_RATE_LIMITED',
      'The recruiting service limits the rate of requests. Try again ' +
        (seconds === null ? 'later.' : `in ${seconds} s.`),
      { extensions: { retryAfter: seconds } },
    ),
  };
}

/** Creates the failure of a request whose token was refused, if a newer token does not help. */
export function unauthorized({ status, detail, requestId }: TokenRefusal): UpstreamFailure {
  const message =
    status === 401 && detail === 'token_expired'
      ? 'The recruiting service refuses a new access token as expired, so renewing it again would not help: ' +
        'the clock of the service, or the lifetime that it states for its tokens, is wrong. ' +
        'Report this to the support of the service; the gateway renews the token again when it is due.'
      : `The recruiting service refuses the gateway's access token (${status}) although it has not expired: ` +
        'the administrator who made it was probably demoted or blocked, or the token was revoked. ' +
        'Run `tokens check` to see what the service answers. Have an administrator check the account, and make a new token if need be.';
  return {
    kind: 'failure',
    isTemporary: false,
    error: new OperatorError('UPSTREAM_UNAUTHORIZED', message, { needsOperator: true }),
    requestId,
  };
}

/** Creates a failure that only the operator can correct. @param why as in `unusable` */
function misconfigured(why: string): UpstreamFailure {
  return {
    kind: 'failure',
    isTemporary: false,
    error: new OperatorError('UPSTREAM_BAD_RESPONSE', `${UNUSABLE} ${why}`, {
      needsOperator: true,
    }),
  };
}

const UNUSABLE = 'The answer of the recruiting service cannot be used:';

/** The first byte of the byte order mark that some servers put before their JSON, which cannot begin with this byte. */
const BYTE_ORDER_MARK = 0xef;

/** Drops the byte order mark, and replaces bytes that are not UTF-8. */
function* repaired(bytes: Buffer): Pausable<Buffer> {
  const decoder = new TextDecoder();
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += WINDOW) {
    parts.push(Buffer.from(decoder.decode(bytes.subarray(at, at + WINDOW), { stream: true })));
    yield;
  }
  return Buffer.concat([...parts, Buffer.from(decoder.decode())]);
}

/**
 * Shorter tokens are not removed: a word of the data may be the same (`test` on a staging service), and a token of
 * that length is not a secret.
 */
const SHORTEST_SECRET = 16;

function* isTokenIn(bytes: Buffer, token: string): Pausable<boolean> {
  if (token.length < SHORTEST_SECRET) return false;
  for (let at = 0; at < bytes.length; at += WINDOW) {
    if (at > 0) yield;
    // A token across two windows is in the second.
    if (bytes.subarray(Math.max(0, at - token.length), at + WINDOW).includes(token)) return true;
  }
  return false;
}

/** A token is ASCII (RFC 6750, section 2.1). */
function withoutToken(bytes: Buffer, token: string): Buffer {
  return Buffer.from(bytes.toString('latin1').replaceAll(token, '[removed]'), 'latin1');
}

/** Bytes that are searched or decoded between two pauses. */
const WINDOW = 4 * STEP;
