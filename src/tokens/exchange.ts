import { isIP, type Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';
import { readBody } from '../read-body.ts';
import { readTokenSet, type TokenPair } from './token-set.ts';

/** How one exchange of a refresh token ended. Only `uncertain` leaves doubt whether the token is spent. */
export type ExchangeOutcome =
  | { kind: 'pair'; pair: TokenPair }
  | { kind: 'invalid-grant'; description: string }
  | { kind: 'rate-limited'; retryAfter: number }
  | { kind: 'refused'; status: number }
  | { kind: 'unsent' }
  | { kind: 'uncertain'; why: string };

/** Opens a connection to the token endpoint, TLS included, without sending a byte of the request. */
export type ConnectToTokenEndpoint = () => Promise<TokenEndpoint>;

export interface TokenEndpoint {
  /** Sends one POST on the open connection: no redirect is followed, nothing is sent again. */
  exchange(refreshToken: string): Promise<ExchangeOutcome>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 120_000;
const MAX_BODY_BYTES = 64 * 1024;
const DEFAULT_RETRY_AFTER_S = 60;
const LONGEST_RETRY_AFTER_S = 3600;

/**
 * Two steps, so that DNS, refused connections and bad certificates end before anything is at stake:
 * connect first, and only then let the caller mark the refresh token as being used.
 */
export function tokenEndpoint(baseUrl: string, agent: string): ConnectToTokenEndpoint {
  const url = new URL(`${baseUrl}/oauth/token`);
  return async () => {
    const socket = await connect(url);
    const client = new Client(url.origin, {
      connect: handOver(socket),
      headersTimeout: ANSWER_TIMEOUT_MS,
      bodyTimeout: ANSWER_TIMEOUT_MS,
    });
    return {
      exchange: (refreshToken) => exchange(client, url, agent, refreshToken),
      close: async () => {
        // A client that never dispatched has not adopted the socket.
        socket.destroy();
        await client.destroy();
      },
    };
  };
}

function connect(url: URL): Promise<Socket> {
  const connector = buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false });
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    connector(
      {
        hostname,
        host: hostname,
        protocol: url.protocol,
        port: url.port || (url.protocol === 'https:' ? '443' : '80'),
        ...(isIP(hostname) === 0 && { servername: hostname }),
      },
      (error, socket) => (error ? reject(error) : resolve(socket)),
    );
  });
}

class NeverSent extends Error {}

/**
 * Gives the client this one socket. A client whose socket is closed before the request was written asks for
 * another one, and would be given the dead one again and again.
 */
function handOver(socket: Socket): buildConnector.connector {
  let given = false;
  return (_options, callback) => {
    // Never within the call itself: the client is not ready for that, and waits for ever.
    setImmediate(() => {
      if (given || socket.destroyed) return callback(new NeverSent(), null);
      given = true;
      callback(null, socket);
    });
  };
}

async function exchange(
  client: Client,
  url: URL,
  agent: string,
  refreshToken: string,
): Promise<ExchangeOutcome> {
  try {
    const response = await client.request({
      method: 'POST',
      path: url.pathname,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        'api-user-agent': agent,
      },
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
      }).toString(),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    return judge(response, parse(await readBody(response.body, MAX_BODY_BYTES)));
  } catch (error) {
    if (error instanceof NeverSent) return { kind: 'unsent' };
    return { kind: 'uncertain', why: error instanceof Error ? error.name : 'no answer' };
  }
}

function judge(response: Dispatcher.ResponseData, body: unknown): ExchangeOutcome {
  const { statusCode: status, headers } = response;
  if (status === 200) {
    const pair = readTokenSet(body);
    return pair ? { kind: 'pair', pair } : { kind: 'uncertain', why: 'a 200 without a token set' };
  }
  if (status === 400 && isGrantError(body) && body.error === 'invalid_grant') {
    return { kind: 'invalid-grant', description: body.error_description ?? '' };
  }
  if (status === 429) return { kind: 'rate-limited', retryAfter: retryAfter(headers) };
  if (status === 401 || status === 403) return { kind: 'refused', status };
  return { kind: 'uncertain', why: `the answer had status ${status}` };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isGrantError(body: unknown): body is { error: string; error_description?: string } {
  return typeof body === 'object' && body !== null && 'error' in body;
}

function retryAfter(headers: Dispatcher.ResponseData['headers']): number {
  const header = String(headers['retry-after']);
  if (!/^\d+$/.test(header)) return DEFAULT_RETRY_AFTER_S;
  return Math.min(Math.max(Number(header), 1), LONGEST_RETRY_AFTER_S);
}
