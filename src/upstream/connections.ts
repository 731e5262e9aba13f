import { Pool, ProxyAgent } from 'undici';
import type { Clock } from '../clock.ts';
import type { Breaker } from './breaker.ts';
import type { OutgoingRequest } from './outgoing-request.ts';
import { readResponse, type UpstreamAnswer } from './read-response.ts';
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
        sent.ended(outcomeOf(answer), answer.kind === 'bad' ? answer.error : undefined);
        return answer;
      } catch (error) {
        sent.ended('left');
        throw error;
      }
    },
    close: () => pool.destroy(),
  };

  async function exchange(
    request: OutgoingRequest,
    token: string,
    sent: SentRequest,
  ): Promise<UpstreamAnswer> {
    const { body, signal, onPressure } = request;
    const tried = breaker.begin(request);
    const deadline = AbortSignal.timeout(timeoutMs);
    try {
      const response = await pool.request({
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
        body,
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      });
      sent.answered(response.statusCode);
      if (response.statusCode === 429 || response.statusCode >= 500) onPressure?.();
      const answer = await readResponse(response, { token, now: clock.now });
      tried.ended(answer);
      return answer;
    } catch (error) {
      if (signal?.aborted) {
        tried.left();
        throw signal.reason;
      }
      const answer = transportError(error, timeoutMs);
      tried.ended(answer);
      return answer;
    }
  }
}
