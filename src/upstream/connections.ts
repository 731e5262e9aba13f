import { Pool, ProxyAgent, type Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import type { Breaker } from './breaker.ts';
import type { OutgoingRequest } from './outgoing-request.ts';
import {
  MAX_RESPONSE_BYTES,
  readResponse,
  type HttpAnswer,
  type UpstreamAnswer,
} from './read-response.ts';
import { transportError } from './transport-error.ts';
import { outcomeOf, type SentRequest, type UpstreamWatch } from './upstream-watch.ts';

/** The HTTP to the service. */
export interface Connections {
  /**
   * One exchange, whatever it comes to, unless the service was found to be down meanwhile.
   *
   * @throws the abort reason of the request's signal
   */
  post(request: OutgoingRequest, token: string): Promise<UpstreamAnswer>;
  close(): Promise<void>;
}

export interface ConnectionsParts {
  readonly baseUrl: string;
  readonly agent: string;
  readonly proxy?: string | undefined;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly breaker: Breaker;
  readonly watch: UpstreamWatch;
}

const CONNECT_TIMEOUT_MS = 10_000;

export function openConnections(parts: ConnectionsParts): Connections {
  const { baseUrl, agent, proxy, concurrency, timeoutMs, clock, breaker, watch } = parts;
  const url = new URL(`${baseUrl}/graphql`);
  const options = {
    connections: concurrency,
    pipelining: 1,
    allowH2: false,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) },
  };
  const pool =
    proxy === undefined
      ? new Pool(url.origin, options)
      : new ProxyAgent({ ...options, uri: proxy, proxyTunnel: true });

  return {
    post: async (request, token) => {
      // The service may have been found to be down since the request began to wait.
      const refused = breaker.refusalOf(request);
      if (refused) return refused;
      const sent = watch.sending(request.cause);
      try {
        const answer = await exchange(request, token, sent);
        if (answer.kind === 'result') sent.read(answer.readAs);
        sent.ended(outcomeOf(answer), answer.kind === 'bad' ? answer.error : undefined);
        return answer;
      } catch (error) {
        sent.ended('left');
        throw error;
      }
    },
    close: () => pool.destroy(),
  };

  function exchange(
    request: OutgoingRequest,
    token: string,
    sent: SentRequest,
  ): Promise<UpstreamAnswer> {
    const { signal, onPressure } = request;
    const tried = breaker.begin(request);
    const { promise, resolve, reject } = Promise.withResolvers<UpstreamAnswer>();
    let under: Dispatcher.DispatchController | undefined;
    let ended = false;
    const end = (settle: () => void) => {
      if (ended) return;
      ended = true;
      clearTimeout(deadline);
      signal.removeEventListener('abort', leave);
      settle();
    };
    const answered = (answer: UpstreamAnswer) =>
      end(() => {
        tried.ended(answer);
        resolve(answer);
      });
    const fail = (error: unknown) => answered(transportError(error, timeoutMs));
    const leave = () =>
      end(() => {
        tried.left();
        under?.abort(LEFT);
        reject(signal.reason as Error);
      });
    const deadline = setTimeout(() => {
      fail(new DOMException('No answer in time.', 'TimeoutError'));
      under?.abort(LEFT);
    }, timeoutMs);
    signal.addEventListener('abort', leave);
    let status = 0;
    let headers: HttpAnswer['headers'] = {};
    let size = 0;
    const chunks: Buffer[] = [];
    pool.dispatch(
      {
        origin: url.origin,
        method: 'POST',
        path: url.pathname,
        headers: {
          ...sent.headers,
          'content-type': 'application/json',
          accept: 'application/json',
          // Without it any coding would be allowed (RFC 9110, 12.5.3).
          'accept-encoding': 'identity',
          authorization: `Bearer ${token}`,
          'api-user-agent': agent,
        },
        body: request.body,
      },
      {
        onRequestStart(controller) {
          under = controller;
          if (ended) controller.abort(LEFT);
        },
        onResponseStart(_controller, code, given) {
          status = code;
          headers = given;
          sent.answered(code);
          if (code === 429 || code >= 500) onPressure?.();
        },
        onResponseData(controller, chunk) {
          size += chunk.length;
          if (size <= MAX_RESPONSE_BYTES) {
            chunks.push(chunk);
            return;
          }
          answered(
            readResponse({ status, headers, body: undefined }, { token, now: clock.now, request }),
          );
          controller.abort(LEFT);
        },
        onResponseEnd() {
          // A late one, of a caller who has left, is not read.
          if (ended) return;
          try {
            const body = joined(chunks, size);
            answered(readResponse({ status, headers, body }, { token, now: clock.now, request }));
          } catch (error) {
            end(() => {
              tried.left();
              reject(error);
            });
          }
        },
        onResponseError(_controller, error) {
          fail(error);
        },
      },
    );
    return promise;
  }
}

/** Made once: a new one, with its stack, costs more than what it ends. */
const LEFT = new DOMException('Nobody waits for it.', 'AbortError');

/** A buffer of its own: a part of what sockets are read into would keep all of that alive. */
function joined(chunks: readonly Buffer[], size: number): Buffer {
  const body = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(body, at);
  return body;
}
