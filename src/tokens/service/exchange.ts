import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../clock.ts';
import { BodyParts } from '../../memory/byte-limit.ts';
import { agentHeaders, requestIdOfService, secondsToWait } from '../../service/request.ts';
import {
  isWhole,
  LARGEST_TOKEN_SET_BYTES,
  objectIn,
  pairNamedIn,
  readGrant,
  type Grant,
  type RawAnswer,
} from '../token-set.ts';
import { clientOver, openConnection, PlainError, reasonOf } from './connection.ts';

/** Opens a connection to the token endpoint, TLS included, without sending a byte of the request. */
export type ConnectToTokenEndpoint = () => Promise<TokenEndpoint>;

export interface TokenEndpoint {
  /**
   * Sends one POST on the open connection, without redirects or retries. Can be called only once. Never rejects.
   *
   * @param mayStillSend called right before the bytes are written, in the same turn of the event loop
   */
  exchange(refreshToken: string, mayStillSend: () => boolean): Promise<ExchangeOutcome>;
  close(): Promise<void>;
}

/** How one exchange of a refresh token ended. */
export type ExchangeOutcome = Judgement & {
  /** The service's request id, for an exchange that did not return tokens. */
  readonly requestId?: string;
};

/** Only after `uncertain` is it unknown whether the token is spent. */
type Judgement =
  /** At least one token arrived. With only one, also the raw answer: it may have the other under another name. */
  | { kind: 'granted'; grant: Grant; answer?: RawAnswer }
  | { kind: 'invalid-grant' }
  /** Seconds, within reason. */
  | { kind: 'rate-limited'; retryAfter: number }
  /** `isPage`: probably from a proxy or firewall. */
  | { kind: 'refused'; status: 401 | 403; isPage?: true }
  | { kind: 'unsent' }
  /** `why` is for the operator, and contains no secrets. `answer` is what arrived, if anything did. */
  | { kind: 'uncertain'; why: string; answer?: RawAnswer };

interface TokenEndpointOptions {
  baseUrl: string;
  /** Value of `User-Agent` and `Api-User-Agent`. */
  agent: string;
  /** For dates in Retry-After. */
  clock: Pick<Clock, 'now'>;
  /** URL of the proxy to go through, if there is one. */
  proxy: string | undefined;
  /** How long to wait for an answer, ms. Default: 2 minutes. */
  patienceMs?: number;
}

const PATIENCE_MS = 120_000;
const GRACE_MS = 1_000;

/**
 * Connects first, and only then lets the caller claim the exchange: failures of DNS, connections, proxies and
 * certificates happen before the refresh token is at risk.
 */
export function tokenEndpoint(options: TokenEndpointOptions): ConnectToTokenEndpoint {
  const url = new URL(`${options.baseUrl}/oauth/token`);
  return async () => {
    const { client, close } = clientOver(await openConnection(url, options.proxy), url);
    let sent = false;
    return {
      close,
      exchange: async (refreshToken, mayStillSend) => {
        const once = client.compose(
          checkBeforeWriting(() => {
            if (sent || !mayStillSend()) return false;
            sent = true;
            return true;
          }),
        );
        try {
          return await exchange(once, url, refreshToken, options);
        } catch (error) {
          return sent
            ? { kind: 'uncertain', why: reasonOf(error), ...rawAnswerIn(error) }
            : { kind: 'unsent' };
        }
      },
    };
  };
}

/** The answer was not HTTP, or stopped being HTTP: undici attaches what it could not parse to its error. */
function rawAnswerIn(error: unknown): { answer?: RawAnswer } {
  const { data } = error as { data?: unknown };
  if (typeof data !== 'string' || data === '') return {};
  const body = Buffer.from(data).subarray(0, LARGEST_TOKEN_SET_BYTES);
  return { answer: { status: 0, contentEncoding: undefined, body } };
}

/**
 * undici calls `onRequestStart` in the function that writes (`writeH1`): between that call and the write of a text body, it
 * only assembles the headers. The connect callback would be earlier, but does not show whether a request was written.
 */
function checkBeforeWriting(mayWrite: () => boolean): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const start = handler.onRequestStart?.bind(handler);
    handler.onRequestStart = (controller, context) => {
      if (mayWrite()) start?.(controller, context);
      else controller.abort(new PlainError('it may not be sent any more'));
    };
    return dispatch(options, handler);
  };
}

function requestOf({ pathname }: URL, agent: string, refreshToken: string) {
  return {
    method: 'POST',
    path: pathname,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      // Without it, a server may compress the answer.
      'accept-encoding': 'identity',
      ...agentHeaders(agent),
    },
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: refreshToken,
    }).toString(),
  } as const;
}

async function exchange(
  client: Dispatcher.ComposedDispatcher,
  url: URL,
  refreshToken: string,
  { agent, clock, patienceMs = PATIENCE_MS }: TokenEndpointOptions,
): Promise<ExchangeOutcome> {
  const answered = new AbortController();
  const late = new AbortController();
  void waitFor(patienceMs, answered.signal).then(
    () => late.abort(new PlainError(`no answer within ${patienceMs / 1000} s`)),
    () => {},
  );
  try {
    const request = requestOf(url, agent, refreshToken);
    const response = await client.request({ ...request, signal: late.signal });
    const { bytes, flaw } = await bodyOf(response.body);
    const { statusCode: status, headers } = response;
    const contentEncoding = headers['content-encoding']?.toString();
    const answer = { status, contentEncoding, body: bytes };
    const retryAfter = secondsToWait(headers['retry-after'], clock.now());
    const judged = judgeAnswer(answer, { flaw, retryAfter });
    if (judged.kind === 'granted') return judged;
    const named = pairNamedIn(answer);
    const secrets = named ? [named.accessToken, named.refreshToken] : [];
    const requestId = requestIdOfService(headers, refreshToken, ...secrets);
    return requestId === undefined ? judged : { ...judged, requestId };
  } finally {
    answered.abort();
  }
}

/**
 * When a suspended process continues, its time is over, but the answer may have arrived. Timers run before sockets are
 * read, so the grace period lets the sockets be read. Does not use the injected clock, which could run ahead of a real
 * socket.
 */
async function waitFor(patienceMs: number, signal: AbortSignal): Promise<void> {
  await delay(patienceMs, undefined, { signal, ref: false });
  await delay(GRACE_MS, undefined, { signal, ref: false });
}

/**
 * Reads as much as arrives: a complete pair is used even if the end of its answer is missing.
 *
 * @returns the body, cut at the largest size of a token set, and why its end is missing, if it is
 */
async function bodyOf(body: AsyncIterable<Uint8Array>) {
  const parts = new BodyParts({ each: Infinity });
  let flaw: string | undefined;
  try {
    for await (const part of body) {
      parts.add(part);
      // Leaving the loop destroys the stream, and ends the download.
      if (parts.size > LARGEST_TOKEN_SET_BYTES) throw new PlainError('its body is too large');
    }
  } catch (error) {
    flaw = reasonOf(error);
  }
  return { bytes: parts.bytes().subarray(0, LARGEST_TOKEN_SET_BYTES), flaw };
}

/**
 * Judges an answer of the token endpoint (interface, 4.2). The status of a success is not documented, so every 2xx
 * whose body begins with a token counts. A pair in an answer with another status is kept but not used until the service
 * accepts its access token: it may be an example on an error page.
 *
 * @param flaw why its end is missing
 * @param retryAfter its Retry-After, in seconds
 */
function judgeAnswer(
  answer: RawAnswer,
  { flaw, retryAfter }: { flaw: string | undefined; retryAfter: number },
): Judgement {
  const { status } = answer;
  const kept = answer.body.length > 0 && { answer };
  if (status >= 200 && status < 300) {
    const grant = readGrant(objectIn(answer));
    if (!grant) {
      const why = `a ${status} without a token (${flaw ?? 'its body was whole'})`;
      return { kind: 'uncertain', why, ...kept };
    }
    return { kind: 'granted', grant, ...(!isWhole(grant) && kept) };
  }
  if (!pairNamedIn(answer)) {
    if (status === 400 && objectIn(answer)?.['error'] === 'invalid_grant') {
      return { kind: 'invalid-grant' };
    }
    if (status === 429) return { kind: 'rate-limited', retryAfter };
    if (status === 401 || status === 403) {
      const isPage = answer.body.length > 0 && !objectIn(answer);
      return { kind: 'refused', status, ...(isPage && { isPage }) };
    }
  }
  return { kind: 'uncertain', why: `the answer had status ${status}`, ...kept };
}
