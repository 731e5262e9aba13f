import type { Agent, Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { codedError, knownCode } from '../errors.ts';
import type { Post } from './authorize.ts';
import { answersTo, LARGEST_ANSWER, type HttpAnswer } from './read-answer.ts';
import type { Failure, Outcome } from './request.ts';
import type { UpstreamTelemetry } from './telemetry.ts';

export interface ConnectionsParts {
  readonly baseUrl: string;
  /** The value of `User-Agent` and `Api-User-Agent`. */
  readonly agent: string;
  /** Opens the connections, through a proxy if there is one. */
  readonly connect: (options: Agent.Options) => Dispatcher;
  /** The most requests in flight, each on a separate connection. */
  readonly concurrency: number;
  /** The timeout of one request, from when it is sent, ms. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly telemetry: Pick<UpstreamTelemetry, 'sending'>;
}

const CONNECT_TIMEOUT_MS = 10_000;

/** Opens the HTTP connections to the service. */
export function openConnections(parts: ConnectionsParts) {
  const { agent, timeoutMs, clock, telemetry } = parts;
  const { origin, pathname: path } = new URL(`${parts.baseUrl}/graphql`);
  const http = parts.connect(optionsOf(parts));

  /** Made for the newest token. */
  let judging = { token: '', judge: answersTo('') };

  const post: Post = (request, { signal, cause }, token) => {
    // All callers may have left while the token was renewed.
    signal.throwIfAborted();
    const report = telemetry.sending(cause);
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    let body: Buffer[] = [];
    let size = 0;
    let controller: Dispatcher.DispatchController | undefined;
    let answer: Omit<HttpAnswer, 'body'> = { status: 0, headers: {} };
    let isOver = false;
    const end = () => {
      isOver = true;
      body = [];
      stopTimer();
      signal.removeEventListener('abort', leave);
    };
    const settle = (outcome: Outcome) => {
      if (isOver) return;
      end();
      if (outcome.kind === 'answer') report(outcome.hasErrors ? 'graphql_error' : 'ok');
      else report(knownCode(outcome.error.extensions['code']), outcome.error);
      resolve(outcome);
    };
    const stop = (outcome: Outcome) => {
      settle(outcome);
      controller?.abort(ABORTED);
    };
    const leave = () => {
      end();
      report('left');
      reject(signal.reason);
      controller?.abort(ABORTED);
    };
    if (token !== judging.token) judging = { token, judge: answersTo(token) };
    const { judge } = judging;
    const read = (bytes?: Buffer) => judge({ ...answer, body: bytes });
    const stopTimer = clock.timer(timeoutMs, () => stop(timedOut(timeoutMs)));
    signal.addEventListener('abort', leave);
    const headers = {
      ...(cause && { 'x-request-id': cause.requestId }),
      ...HEADERS,
      authorization: `Bearer ${token}`,
      'user-agent': agent,
      // The service documents it (interface, 4.3).
      'api-user-agent': agent,
    };
    const options = { origin, path, method: 'POST' as const, headers, body: request.body };
    http.dispatch(options, {
      onRequestStart: (started) => {
        controller = started;
        if (isOver) started.abort(ABORTED);
      },
      onResponseStart: (_, status, received) => void (answer = { status, headers: received }),
      onResponseData: (_, part) => {
        if (isOver) return;
        body.push(part);
        if (body.length > MOST_PARTS) body = [Buffer.concat(body)];
        size += part.length;
        if (size > LARGEST_ANSWER) stop(read());
      },
      onResponseEnd: () => {
        // Most answers have one part, which is not copied.
        if (!isOver) settle(read(body.length === 1 ? body[0] : Buffer.concat(body)));
      },
      onResponseError: (_, error) => settle(unreachable(error)),
    });
    return promise;
  };

  return { post, close: () => http.destroy() };
}

function optionsOf({ concurrency, timeoutMs }: ConnectionsParts): Agent.Options {
  return {
    connections: concurrency,
    pipelining: 1,
    // The timer of each request covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) },
  };
}

const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json',
  // Without this header any coding would be allowed (RFC 9110, section 12.5.3).
  'accept-encoding': 'identity',
};

/** The parts of an answer that are kept: it may arrive byte by byte, each an object of some hundred bytes. */
const MOST_PARTS = 10_000;

/** Created once: a new error and its stack would cost more than the request that it ends. */
const ABORTED = new DOMException('The request was aborted.', 'AbortError');

function timedOut(timeoutMs: number): Failure {
  return {
    kind: 'failure',
    error: codedError(
      'UPSTREAM_TIMEOUT',
      `The recruiting service did not answer within ${timeoutMs} ms. ` +
        'Request fewer records or fields at a time, or try again later.',
      { extensions: { limit: 'UPSTREAM_TIMEOUT_MS' } },
    ),
  };
}

/** The codes that undici reports for requests that `close` ended. */
const CLOSED = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** @param cause for the log only, because it may contain addresses */
function unreachable(cause: Error & { readonly code?: unknown }): Failure {
  const reason = typeof cause.code === 'string' ? cause.code : cause.name;
  return {
    kind: 'failure',
    isTemporary: !CLOSED.has(reason),
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      `The recruiting service cannot be reached (${reason}). Try again later.`,
      { cause },
    ),
  };
}
