import { Pool, ProxyAgent, type Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { MAX_RESPONSE_BYTES, readResponse, type HttpAnswer } from './read-response.ts';
import type { OutgoingRequest, UpstreamAnswer, UpstreamFailure } from './request.ts';
import { outcomeOf, type UpstreamTelemetry } from './telemetry.ts';

/** The HTTP connections to the service. */
export interface Connections {
  /**
   * Sends a request once.
   *
   * @throws the abort reason of the request's signal
   */
  post(request: OutgoingRequest, token: string): Promise<UpstreamAnswer>;
  close(): Promise<void>;
}

export interface ConnectionsParts {
  readonly baseUrl: string;
  /** Value of `Api-User-Agent`. */
  readonly agent: string;
  /** URL of the proxy to go through, if there is one. */
  readonly proxy?: string | undefined;
  /** Requests in flight at a time, each on a connection of its own. */
  readonly concurrency: number;
  /** Time for one request from when it is sent, ms. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly telemetry: UpstreamTelemetry;
}

const CONNECT_TIMEOUT_MS = 10_000;

export function openConnections(parts: ConnectionsParts): Connections {
  const { agent, timeoutMs, clock, telemetry } = parts;
  const { origin, pathname: path } = new URL(`${parts.baseUrl}/graphql`);
  const pool = createPool(origin, parts);

  return {
    post: (request, token) =>
      new Promise((resolve, reject) => {
        const { signal, onPressure } = request;
        // All callers may have left while the token was renewed.
        signal.throwIfAborted();
        const reported = telemetry.sending(request.cause);
        let controller: Dispatcher.DispatchController | undefined;
        let isOver = false;
        let status = 0;
        let headers: HttpAnswer['headers'] = {};
        let size = 0;
        const chunks: Buffer[] = [];

        const read = (body: Buffer | undefined) =>
          readResponse({ status, headers, body }, { token, now: clock.now, request });
        const end = () => {
          isOver = true;
          clearTimeout(timer);
          signal.removeEventListener('abort', leave);
        };
        const settle = (answer: UpstreamAnswer) => {
          if (isOver) return;
          end();
          if (answer.kind === 'result') reported.read(answer.readAs);
          reported.ended(outcomeOf(answer), answer.kind === 'failure' ? answer.error : undefined);
          resolve(answer);
        };
        const leave = () => {
          end();
          reported.ended('left');
          controller?.abort(ABORTED);
          reject(signal.reason as Error);
        };
        const timer = setTimeout(() => {
          settle(timedOut(timeoutMs));
          controller?.abort(ABORTED);
        }, timeoutMs);
        signal.addEventListener('abort', leave);

        pool.dispatch(
          {
            origin,
            path,
            method: 'POST',
            headers: {
              ...reported.headers,
              'content-type': 'application/json',
              accept: 'application/json',
              // Without this header any coding would be allowed (RFC 9110, section 12.5.3).
              'accept-encoding': 'identity',
              authorization: `Bearer ${token}`,
              'api-user-agent': agent,
            },
            body: request.body,
          },
          {
            onRequestStart(started) {
              controller = started;
              if (isOver) controller.abort(ABORTED);
            },
            onResponseStart(_controller, code, received) {
              status = code;
              headers = received;
              reported.answered(code);
              if (code === 429 || code >= 500) onPressure?.();
            },
            onResponseData(receiving, chunk) {
              size += chunk.length;
              if (size <= MAX_RESPONSE_BYTES) {
                chunks.push(chunk);
                return;
              }
              settle(read(undefined));
              receiving.abort(ABORTED);
            },
            onResponseEnd() {
              // All callers have left, so nothing is read.
              if (isOver) return;
              try {
                settle(read(joined(chunks, size)));
              } catch (error) {
                end();
                reported.ended('left');
                reject(error);
              }
            },
            onResponseError(_controller, error) {
              settle(unreachable(error));
            },
          },
        );
      }),
    close: () => pool.destroy(),
  };
}

function createPool(origin: string, { proxy, concurrency, timeoutMs }: ConnectionsParts) {
  const options = {
    connections: concurrency,
    pipelining: 1,
    allowH2: false,
    // The timer of each request covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) },
  };
  return proxy === undefined
    ? new Pool(origin, options)
    : new ProxyAgent({ ...options, uri: proxy, proxyTunnel: true });
}

/** Created once: a new error and its stack would cost more than the request that it ends. */
const ABORTED = new DOMException('The request was aborted.', 'AbortError');

/** Copies: a view of the buffers that sockets are read into would keep all of them in memory. */
function joined(chunks: readonly Buffer[], size: number): Buffer {
  const body = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(body, at);
  return body;
}

function timedOut(timeoutMs: number): UpstreamFailure {
  return {
    kind: 'failure',
    isTemporary: false,
    error: codedError(
      'UPSTREAM_TIMEOUT',
      `The recruiting service did not answer within ${timeoutMs} ms. ` +
        'Request fewer records or fields at a time, or try again later.',
    ),
  };
}

/** What undici reports of requests that `close` ended. */
const CLOSED = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** @param cause may name addresses, so it goes to the log only */
function unreachable(cause: Error & { readonly code?: unknown }): UpstreamFailure {
  const reason = typeof cause.code === 'string' ? cause.code : cause.name;
  const isClosed = CLOSED.has(reason);
  return {
    kind: 'failure',
    isTemporary: !isClosed,
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      isClosed
        ? 'The gateway is stopping. Send the request again.'
        : `The recruiting service cannot be reached (${reason}). Try again later.`,
      { cause },
    ),
  };
}
