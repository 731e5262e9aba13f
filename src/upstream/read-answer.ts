import { isUtf8 } from 'node:buffer';
import { codedError, OperatorError, TooBig } from '../errors.ts';
import { limitIn, secondsOf } from './rate-limit.ts';
import { UpstreamAnswer, type Failure, type Outcome } from './request.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** undefined if it was larger than `LARGEST_ANSWER`. */
  readonly body: Buffer | undefined;
}

const MEGABYTE = 1024 * 1024;
/** The largest body, bytes: all of it is in memory, and is read in one go. */
export const LARGEST_ANSWER = 8 * MEGABYTE;

/**
 * Makes what judges answers of the GraphQL endpoint to requests with this token. The service documents only the body of a
 * 401 (interface, 2.2), so all other answers are judged by their shape: a JSON object with `data` or a list of `errors` is
 * GraphQL, whatever its status. Other answers are not, and their text is not passed on. They are never decompressed, so
 * that a small answer cannot become a large one.
 *
 * @param token It is removed from everything that is passed on to callers and to logs. One that is written with JSON
 *   escapes is not recognized: access tokens need none.
 */
export function answersTo(token: string): (answer: HttpAnswer) => Outcome {
  // Both in one search: of two texts, V8 looks for the places where neither can begin, and takes a fifth of the time.
  const unusual = new RegExp(`"errors"|${RegExp.escape(token)}`);
  return ({ status, headers, body }) => {
    if (!body) return tooLarge();
    // A character for each byte: both are ASCII (of tokens: RFC 6750, section 2.1).
    const text = body.toString('latin1');
    const isUsual = !unusual.test(text);
    if (isUsual && status === 200 && isObjectOfData(text) && isUtf8(body)) {
      return new UpstreamAnswer(status, body, false, true);
    }
    const passedOn = isUsual ? body : Buffer.from(text.replaceAll(token, '[removed]'), 'latin1');
    return judge(status, headers, passedOn);
  };
}

/** Whether data begin and end as `JSON.stringify` writes them. Such an answer is not parsed: its reader does, if at all. */
function isObjectOfData(text: string): boolean {
  return text.startsWith('{"data":{') && /\}\s*$/.test(text.slice(-3));
}

function judge(status: number, headers: HttpAnswer['headers'], bytes: Buffer): Outcome {
  const json = parse(bytes);
  if (status === 401 || status === 403) return refusal(status, json?.['detail']);
  const stated = secondsOf(headers['retry-after']);
  if (status === 429) return rateLimited(stated);
  const { data, errors } = json ?? {};
  const isAnswer = isGraphQL(data, errors);
  const answer = isAnswer ? new UpstreamAnswer(status, bytes, isFilled(errors)) : undefined;
  // What was answered beside limited fields must not be lost with them.
  const limit = hasValues(data) ? undefined : limitIn(errors);
  if (answer && limit) return rateLimited(limit.seconds ?? stated);
  if (status >= 500) return { ...unavailable(status, stated), answer };
  return answer ?? notGraphQL(status);
}

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

function parse(bytes: Buffer): Json | undefined {
  if (!isUtf8(bytes)) return undefined;
  try {
    const json: unknown = JSON.parse(bytes.toString());
    return isObject(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isGraphQL(data: unknown, errors: unknown): boolean {
  if (data !== undefined && data !== null && !isObject(data)) return false;
  if (errors !== undefined && errors !== null && !Array.isArray(errors)) return false;
  return data !== undefined || isFilled(errors);
}

function isFilled(errors: unknown): boolean {
  return Array.isArray(errors) && errors.length > 0;
}

function hasValues(data: unknown): boolean {
  return isObject(data) && Object.values(data).some((value) => value !== null);
}

function tooLarge(): Failure {
  return unusable(
    `it is larger than ${LARGEST_ANSWER / MEGABYTE} MB. Request fewer records or fields at a time.`,
    new TooBig(),
  );
}

function unavailable(status: number, seconds: number | undefined): Failure {
  const failure = unusable(`it has status ${status}. Try again later.`);
  return { ...failure, isTemporary: true, retryAfterMs: seconds && seconds * 1000 };
}

/** The end of a request whose answer is not GraphQL JSON. */
export function notGraphQL(status: number): Failure {
  if (status === 413) {
    return unusable(
      'it has status 413, which says that too much was requested. Request fewer records or fields at a time.',
      new TooBig(),
    );
  }
  const why = `it is not GraphQL JSON (status ${status}). Check RECRUITING_URL, and that no proxy compresses answers.`;
  const error = new OperatorError('UPSTREAM_BAD_RESPONSE', `${UNUSABLE} ${why}`);
  return { kind: 'failure', error };
}

/** @param seconds undefined if the service stated none */
function rateLimited(seconds: number | undefined): Failure {
  const retryAfter = seconds === undefined ? null : Math.max(1, Math.ceil(seconds));
  return {
    kind: 'failure',
    isTemporary: true,
    retryAfterMs: seconds && seconds * 1000,
    error: codedError(
      'UPSTREAM_RATE_LIMITED',
      'The recruiting service limits the rate of requests. Try again ' +
        (retryAfter === null ? 'later.' : `in ${retryAfter} s.`),
      { extensions: { retryAfter } },
    ),
  };
}

function refusal(status: 401 | 403, detail: unknown): Failure {
  const message =
    `The recruiting service refuses the gateway's access token (${status}) although it has not expired: ` +
    'the administrator who made it was probably demoted or blocked, or the token was revoked. ' +
    'Run `tokens check` to see what the service answers. Have an administrator check the account, and make a new token if need be.';
  const error = new OperatorError('UPSTREAM_UNAUTHORIZED', message);
  const refused = { status, detail: typeof detail === 'string' ? detail : '' };
  return { kind: 'failure', error, refusal: refused };
}

const UNUSABLE = 'The answer of the recruiting service cannot be used:';

/** @param why completes `UNUSABLE`, and says what to do */
function unusable(why: string, cause?: TooBig): Failure {
  const error = codedError('UPSTREAM_BAD_RESPONSE', `${UNUSABLE} ${why}`, { cause });
  return { kind: 'failure', error };
}
