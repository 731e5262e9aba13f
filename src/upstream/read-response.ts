import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Dispatcher } from 'undici';
import { BodyTooLarge, readBody } from '../read-body.ts';
import { codedError } from '../errors.ts';
import { concealToken } from './conceal-token.ts';
import { isDeeperThan } from './is-deeper-than.ts';
import { isObject, readResult } from './read-result.ts';

/** What one HTTP answer of the service means. */
export type UpstreamAnswer =
  | { kind: 'result'; result: ExecutionResult }
  | { kind: 'unauthorized'; status: number; detail: string }
  | { kind: 'rate-limited'; retryAfter: number | undefined }
  /** `result`: what it said all the same, where that was GraphQL. */
  | { kind: 'bad'; error: GraphQLError; mayPass: boolean; result?: ExecutionResult };

const MEGABYTE = 1024 * 1024;
/** Of one answer, counted while it is read: it is all in memory before any of it is of use. */
const MAX_RESPONSE_BYTES = 64 * MEGABYTE;
/** Of one answer. What comes after this copies, checks and writes it level by level, as deep as the stack is. */
const MAX_LEVELS = 500;

/**
 * Reads an answer of the GraphQL endpoint. The service documents only the 401 body (interface, 2.2), so
 * everything else is judged by its shape: a JSON object with `data` or a list of `errors` is GraphQL,
 * whatever its status; anything else is not, and none of its text is passed on.
 *
 * @param facts `token`: what the request was sent with, of which nothing is passed on either
 */
export async function readResponse(
  response: Dispatcher.ResponseData,
  { token, now }: { readonly token: string; readonly now: () => number },
): Promise<UpstreamAnswer> {
  const { statusCode: status, headers, body } = response;
  let text: string;
  try {
    text = await readBody(body, MAX_RESPONSE_BYTES);
  } catch (cause) {
    if (cause instanceof BodyTooLarge) {
      return bad(
        `its answer is larger than ${MAX_RESPONSE_BYTES / MEGABYTE} MB; ask for less at a time: fewer records or fields`,
        false,
        cause,
      );
    }
    throw cause;
  }
  // Never unpacked, so that a small answer cannot become a large one. Other statuses speak for themselves.
  if (isCompressed(headers) && status < 500 && status !== 429) {
    return bad(
      'its answer is compressed, which the gateway did not allow; the operator has to turn compression off in the proxy between them',
      false,
    );
  }
  const document = parse(concealToken(text, token));
  if (isDeeperThan(MAX_LEVELS, document)) {
    return bad(`its answer is nested more than ${MAX_LEVELS} levels deep`, false);
  }
  if (status === 401 || status === 403) {
    return { kind: 'unauthorized', status, detail: stringField(document, 'detail') };
  }
  if (status === 429)
    return { kind: 'rate-limited', retryAfter: secondsOf(headers['retry-after'], now) };
  const result = readResult(document);
  if (result && status < 500) return { kind: 'result', result };
  if (status >= 500) {
    return { ...bad(`it answered with status ${status}`, true), ...(result && { result }) };
  }
  if (status >= 300 && status < 400) {
    return bad(`it answered with a redirect (${status}); check RECRUITING_URL`, false);
  }
  return bad(`its answer (status ${status}) is not GraphQL JSON`, false);
}

function isCompressed(headers: Dispatcher.ResponseData['headers']): boolean {
  const encoding = headers['content-encoding'] ?? '';
  return encoding !== '' && String(encoding).toLowerCase() !== 'identity';
}

function bad(what: string, mayPass: boolean, cause?: unknown) {
  const error = codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service gave no usable answer: ${what}.`,
    { cause },
  );
  return { kind: 'bad', error, mayPass } as const;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function stringField(document: unknown, name: string): string {
  const value = isObject(document) ? document[name] : undefined;
  return typeof value === 'string' ? value : '';
}

const HTTP_DATE = /^(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d\d:\d\d:\d\d/i;

/** Retry-After as seconds; a date is allowed too (RFC 9110, 10.2.3). */
function secondsOf(header: string | string[] | undefined, now: () => number): number | undefined {
  if (typeof header !== 'string') return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header);
  // Date.parse alone finds a date in nearly any text that holds a number.
  const date = HTTP_DATE.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now()) / 1000);
}
