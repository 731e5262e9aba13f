import { isUtf8 } from 'node:buffer';
import type { GraphQLError } from 'graphql';
import { codedError } from '../errors.ts';
import { MAX_LEVELS, parseJson, type Json } from '../json.ts';
import { parseRetryAfter } from '../retry-after.ts';
import { concealToken, mayHoldToken } from './conceal-token.ts';
import type { RequestedAnswer } from './outgoing-request.ts';

/** What one HTTP answer of the service means. */
export type UpstreamAnswer =
  | UpstreamResult
  | { kind: 'unauthorized'; status: number; detail: string }
  | { kind: 'rate-limited'; retryAfter: number | undefined }
  /** `result`: what it said all the same, where that was GraphQL. */
  | { kind: 'bad'; error: GraphQLError; mayPass: boolean; result?: UpstreamResult };

export interface UpstreamResult {
  readonly kind: 'result';
  /** As the request wants it read. */
  readonly value: unknown;
  readonly hasErrors: boolean;
  readonly readAs: ReadAs;
}

/** By the scanner where the answer is as it was promised; else value by value, which costs more. */
export type ReadAs = 'scanned' | 'general';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** A buffer of its own; undefined: it was larger than MAX_RESPONSE_BYTES. */
  readonly body: Buffer | undefined;
}

const MEGABYTE = 1024 * 1024;
/** Of one answer, counted while it is read: it is all in memory before any of it is of use. */
export const MAX_RESPONSE_BYTES = 64 * MEGABYTE;

/**
 * Reads an answer of the GraphQL endpoint. The service documents only the 401 body (interface, 2.2), so
 * everything else is judged by its shape: a JSON object with `data` or a list of `errors` is GraphQL,
 * whatever its status; anything else is not, and none of its text is passed on.
 *
 * @param facts `token`: what the request was sent with, of which nothing is passed on either
 */
export function readResponse(
  { status, headers, body }: HttpAnswer,
  { token, now, request }: { token: string; now: () => number; request: RequestedAnswer<unknown> },
): UpstreamAnswer {
  if (!body) {
    return bad(
      `its answer is larger than ${MAX_RESPONSE_BYTES / MEGABYTE} MB; ask for less at a time: fewer records or fields`,
      false,
    );
  }
  // Never unpacked, so that a small answer cannot become a large one. Other statuses speak for themselves.
  if (isCompressed(headers) && status < 500 && status !== 429) {
    return bad(
      'its answer is compressed, which the gateway did not allow; the operator has to turn compression off in the proxy between them',
      false,
    );
  }
  if (status === 200 && isUtf8(body) && !mayHoldToken(body, token)) {
    const value = request.scan(body);
    if (value !== undefined) return { kind: 'result', value, hasErrors: false, readAs: 'scanned' };
  }
  // Without the byte order mark that some servers put in front of their JSON.
  const json = parseJson(concealToken(new TextDecoder().decode(body), token));
  if (json === 'too deep') {
    return bad(`its answer is nested more than ${MAX_LEVELS} levels deep`, false);
  }
  if (status === 401 || status === 403) {
    return { kind: 'unauthorized', status, detail: json?.get('detail')?.string ?? '' };
  }
  if (status === 429) {
    return { kind: 'rate-limited', retryAfter: parseRetryAfter(headers['retry-after'], now()) };
  }
  const isResult = json !== undefined && isGraphQL(json);
  if (isResult && status < 500) return resultOf(json, request);
  if (status >= 500) {
    return {
      ...bad(`it answered with status ${status}`, true),
      ...(isResult && { result: resultOf(json, request) }),
    };
  }
  if (status >= 300 && status < 400) {
    return bad(`it answered with a redirect (${status}); check RECRUITING_URL`, false);
  }
  return bad(`its answer (status ${status}) is not GraphQL JSON`, false);
}

function resultOf(json: Json, request: RequestedAnswer<unknown>): UpstreamResult {
  return {
    kind: 'result',
    value: request.read(json),
    hasErrors: (json.get('errors')?.values.length ?? 0) > 0,
    readAs: 'general',
  };
}

function isGraphQL(json: Json): boolean {
  const [data, errors] = [json.get('data'), json.get('errors')];
  if (data && data.kind !== 'object' && !data.isNull) return false;
  if (errors && errors.kind !== 'list' && !errors.isNull) return false;
  return data !== undefined || (errors?.values.length ?? 0) > 0;
}

function isCompressed(headers: HttpAnswer['headers']): boolean {
  const encoding = headers['content-encoding'] ?? '';
  return encoding !== '' && String(encoding).toLowerCase() !== 'identity';
}

function bad(what: string, mayPass: boolean) {
  const error = codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service gave no usable answer: ${what}.`,
  );
  return { kind: 'bad', error, mayPass } as const;
}
