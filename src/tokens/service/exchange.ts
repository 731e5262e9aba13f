import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../clock.ts';
import { BodyTooLarge, readBody } from '../../read-body.ts';
import { clientOver } from './client-over.ts';
import { openConnection } from './open-connection.ts';
import { PlainError, reasonOf } from './reason-of.ts';
import { retryAfter } from '../../retry-after.ts';
import { readGrant, type Grant } from '../token-set.ts';

/** How one exchange of a refresh token ended. Only `uncertain` leaves doubt whether the token is spent. */
export type ExchangeOutcome =
  /** At least one token came. */
  | { kind: 'granted'; grant: Grant }
  | { kind: 'invalid-grant' }
  /** Seconds, within reason. */
  | { kind: 'rate-limited'; retryAfter: number }
  | { kind: 'refused'; status: 401 | 403 }
  | { kind: 'unsent' }
  /** `why` is for people, and holds nothing secret. */
  | { kind: 'uncertain'; why: string };

/** Opens a connection to the token endpoint, TLS included, without sending a byte of the request. */
export type ConnectToTokenEndpoint = () => Promise<TokenEndpoint>;

export interface TokenEndpoint {
  /**
   * Sends one POST on the open connection: no redirect is followed, nothing is sent again. Once only. Never rejects.
   *
   * @param mayStillSend asked right before the bytes are written, with no turn of the event loop between
   */
  exchange(refreshToken: string, mayStillSend: () => boolean): Promise<ExchangeOutcome>;
  close(): Promise<void>;
}

export interface TokenEndpointOptions {
  baseUrl: string;
  /** Value of `Api-User-Agent`. */
  agent: string;
  /** Tells how far away the date in a Retry-After is. */
  clock: Pick<Clock, 'now'>;
  /** URL of the proxy to go through, if there is one. */
  proxy: string | undefined;
  /** How long an answer is waited for. */
  patienceMs?: number;
}

const PATIENCE_MS = 120_000;
const GRACE_MS = 1_000;
const MAX_BODY_BYTES = 64 * 1024;

/**
 * Two steps, so that DNS, refused connections, proxies and bad certificates end before anything is at stake:
 * connect first, and only then let the caller mark the refresh token as being used.
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
          askBeforeWriting(() => {
            if (sent || !mayStillSend()) return false;
            sent = true;
            return true;
          }),
        );
        try {
          return await exchange(once, requestOf(url, options.agent, refreshToken), options);
        } catch (error) {
          return sent ? { kind: 'uncertain', why: reasonOf(error) } : { kind: 'unsent' };
        }
      },
    };
  };
}

/**
 * undici calls `onRequestStart` in the very function that writes (`writeH1`): between that call and the write
 * of a body that is text it only puts the headers together. The connect callback would be earlier, but cannot
 * tell whether a request was written at all.
 */
function askBeforeWriting(mayWrite: () => boolean): Dispatcher.DispatcherComposeInterceptor {
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
      // Without it, a server may compress as it likes.
      'accept-encoding': 'identity',
      'api-user-agent': agent,
    },
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: refreshToken,
    }).toString(),
  } as const;
}

async function exchange(
  client: Dispatcher.ComposedDispatcher,
  request: ReturnType<typeof requestOf>,
  { clock, patienceMs = PATIENCE_MS }: TokenEndpointOptions,
): Promise<ExchangeOutcome> {
  const answered = new AbortController();
  const late = new AbortController();
  void waitFor(patienceMs, answered.signal).then(
    () => late.abort(new PlainError(`no answer within ${patienceMs / 1000} s`)),
    () => {},
  );
  try {
    const response = await client.request({ ...request, signal: late.signal });
    return judge(response, await bodyOf(response.body), clock);
  } finally {
    answered.abort();
  }
}

/**
 * A process that was stopped finds on waking that its time is over, and perhaps that the answer has come
 * meanwhile. Timers run before sockets are read: with the grace, sockets get their turn. Not by the clock
 * that is passed in: a bent one would run ahead of a real socket.
 */
async function waitFor(patienceMs: number, signal: AbortSignal): Promise<void> {
  await delay(patienceMs, undefined, { signal, ref: false });
  await delay(GRACE_MS, undefined, { signal, ref: false });
}

/** What came of it: a pair that is whole is not thrown away because the end of its answer does not come. */
async function bodyOf(body: AsyncIterable<Uint8Array>): Promise<{ text: string; flaw?: string }> {
  const came: Uint8Array[] = [];
  try {
    return { text: await readBody(copying(body, came), MAX_BODY_BYTES) };
  } catch (error) {
    const text = error instanceof BodyTooLarge ? '' : Buffer.concat(came).toString();
    return { text, flaw: reasonOf(error) };
  }
}

async function* copying<T>(source: AsyncIterable<T>, copy: T[]): AsyncIterable<T> {
  for await (const item of source) {
    copy.push(item);
    yield item;
  }
}

function judge(
  { statusCode: status, headers }: Dispatcher.ResponseData,
  { text, flaw }: { text: string; flaw?: string },
  clock: Pick<Clock, 'now'>,
): ExchangeOutcome {
  if (status === 200) {
    const grant = readGrant(parse(text));
    if (grant) return { kind: 'granted', grant };
    return { kind: 'uncertain', why: `a 200 without a token (${flaw ?? 'its body was whole'})` };
  }
  if (status === 400 && isInvalidGrant(parse(text))) return { kind: 'invalid-grant' };
  if (status === 429) {
    return { kind: 'rate-limited', retryAfter: retryAfter(headers['retry-after'], clock.now()) };
  }
  if (status === 401 || status === 403) return { kind: 'refused', status };
  return { kind: 'uncertain', why: `the answer had status ${status}` };
}

function isInvalidGrant(body: unknown): boolean {
  return (body as { error?: unknown } | null | undefined)?.error === 'invalid_grant';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
