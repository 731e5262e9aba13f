import { Agent, EnvHttpProxyAgent, type Dispatcher } from 'undici';
import { parseJson, readPair, type Lifetimes, type Pair } from './pair.ts';
import { LONGEST_PAUSE_MS } from './state.ts';

/** The addresses of a service that are about tokens. */
export interface TokenService {
  /**
   * Sends the refresh token of a pair once, without redirects or retries. Never rejects.
   *
   * @param maySend called right before the bytes are written, in the same turn of the event loop
   */
  exchange(pair: Pair, maySend: () => boolean): Promise<Exchange>;
  /**
   * Asks whether the service accepts an access token. Never rejects. Without it, `invalid_grant` is never taken for a
   * refresh that was too early: it means that the refresh token is spent or revoked.
   *
   * @param asCaller sends a query instead, which can be refused although the token is accepted: its account may have lost
   * rights. Default: false
   */
  check?(accessToken: string, asCaller?: boolean): Promise<Verdict>;
}

/** How one exchange of a refresh token ended. Only after `unclear` it is unknown whether the token is spent. */
export type Exchange =
  | { readonly kind: 'granted'; readonly pair: Pair; readonly flaw?: string }
  /** `why`: what the service says about it. */
  | { readonly kind: 'invalid-grant'; readonly why?: string }
  /** Certainly nothing was sent, or the service answered that it processed nothing. */
  | Unsent
  /** `answer`: the beginning of what arrived. */
  | { readonly kind: 'unclear'; readonly why: string; readonly answer: string | null };

export interface Unsent {
  readonly kind: 'unsent';
  readonly why: string;
  /** Seconds. */
  readonly retryAfter?: number;
  /** The service or a proxy refuses the request itself (RFC 6749, 5.2), which the operator has to correct. Default: false */
  readonly isMistake?: boolean;
}

export type Verdict =
  | { readonly kind: 'works' }
  | { readonly kind: 'refused'; readonly detail: string }
  | { readonly kind: 'unclear'; readonly why: string };

interface ServiceAddress {
  readonly baseUrl: string;
  /** Value of `User-Agent` and `Api-User-Agent`. */
  readonly agent: string;
  /** Opens the connections, through a proxy if there is one. */
  readonly http: Dispatcher;
  /** How long to wait for the answer of an exchange, ms. Default: 2 minutes. */
  readonly answerMs?: number;
}

const LARGEST_ANSWER = 64 * 1024;
const ANSWER_MS = 120_000;
const CHECK_MS = 10_000;
const LINK_MS = 30_000;
/** Timers run before sockets are read: an answer that arrived while this process was stopped can still be read. */
const GRACE_MS = 1_000;
const DEFAULT_RETRY_AFTER = 60;

/** The addresses of the recruiting service. */
export function tokenService({ baseUrl, agent, http, answerMs }: ServiceAddress) {
  return {
    exchange: exchangeAt({
      url: new URL(`${baseUrl}/oauth/token`),
      headers: agentHeaders(agent),
      http,
      answerMs,
      settings: 'RECRUITING_URL, RECRUITING_AGENT',
    }),
    check: async (accessToken: string, asCaller = false): Promise<Verdict> => {
      const headers = { ...agentHeaders(agent), authorization: `Bearer ${accessToken}` };
      const [path, request] = asCaller
        ? ['graphql', { headers: { ...headers, ...JSON_TYPES }, body: QUERY }]
        : ['auth_check', { headers }];
      const reply = await send(http, new URL(`${baseUrl}/${path}`), request, CHECK_MS);
      const { status, text, flaw } = reply;
      if (status === 204 || status === 200) return { kind: 'works' };
      const { type, detail } = (parseJson(text) ?? {}) as { type?: unknown; detail?: unknown };
      // The 403 of a firewall is a page, and says nothing about the token.
      const isRefused = status === 401 || (status === 403 && typeof type === 'string');
      if (!isRefused) return { kind: 'unclear', why: flaw ?? `status ${status}` };
      return { kind: 'refused', detail: typeof detail === 'string' ? detail : `status ${status}` };
    },
  } satisfies TokenService;
}

const QUERY = '{"query":"{ __typename }"}';
const JSON_TYPES = { 'content-type': 'application/json', accept: 'application/json' };

/** A token endpoint (RFC 6749, 3.2), and what is sent to it beside the refresh token. */
interface TokenEndpoint {
  readonly url: URL;
  /** Opens the connections, through a proxy if there is one. */
  readonly http: Dispatcher;
  readonly headers?: Readonly<Record<string, string>>;
  /** How the client names itself (RFC 6749, 2.3.1). Default: not at all. */
  readonly client?: ClientCredentials | undefined;
  /** Further fields of the form, such as `scope`. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Whether an answer without a new refresh token is normal (RFC 6749, 6). Otherwise it is logged. Default: false */
  readonly mayKeepToken?: boolean;
  /** Default: those that the recruiting service documents. */
  readonly lifetimes?: Lifetimes;
  /** What to check if the endpoint cannot be reached or refuses the request itself. */
  readonly settings: string;
  /** How long to wait for the answer of an exchange, ms. Default: 2 minutes. */
  readonly answerMs?: number | undefined;
}

export interface ClientCredentials {
  readonly id: string;
  /** Default: none, as for a public client, whose id is sent in the body. */
  readonly secret?: string;
  /** Where the secret is sent. Default: header */
  readonly in?: 'header' | 'body';
}

/** Exchanges refresh tokens at any token endpoint. */
export function exchangeAt(endpoint: TokenEndpoint): TokenService['exchange'] {
  const { url, http, client, settings, answerMs = ANSWER_MS } = endpoint;
  const credentials = credentialsOf(client);
  const headers = { ...FORM, ...endpoint.headers, ...credentials.headers };
  return async (pair, maySend) => {
    let isSent = false;
    const guarded = http.compose(beforeWriting(() => !isSent && (isSent = maySend())));
    const body = new URLSearchParams({
      ...endpoint.fields,
      ...credentials.fields,
      grant_type: 'refresh_token',
      refresh_token: pair.refreshToken,
    });
    const reply = await send(guarded, url, { headers, body: String(body) }, answerMs);
    if (isSent) return judge(pair, reply, endpoint);
    const { flaw = TOO_LATE } = reply;
    const advice = `nothing was sent, so check ${settings}, the network, HTTPS_PROXY and NODE_EXTRA_CA_CERTS`;
    return { kind: 'unsent', why: flaw === TOO_LATE ? flaw : `${flaw}: ${advice}` };
  };
}

function credentialsOf(client: ClientCredentials | undefined): {
  readonly fields?: Record<string, string>;
  readonly headers?: Record<string, string>;
} {
  if (!client) return {};
  const { id, secret } = client;
  if (secret === undefined) return { fields: { client_id: id } };
  if (client.in === 'body') return { fields: { client_id: id, client_secret: secret } };
  // Both halves are encoded as in a form, so that a colon in one of them does not end it.
  const [user, password] = [id, secret].map((half) =>
    String(new URLSearchParams([['', half]])).slice(1),
  );
  return { headers: { authorization: `Basic ${btoa(`${user}:${password}`)}` } };
}

const FORM = {
  'content-type': 'application/x-www-form-urlencoded',
  accept: 'application/json',
  'accept-encoding': 'identity',
};

/**
 * Reads the token set of a one-time link. Reading does not end the link; the first refresh of its tokens does.
 *
 * @throws Error for the operator, which never contains the link or a token
 */
export async function readLink(
  link: string,
  { agent, http }: Pick<ServiceAddress, 'agent' | 'http'>,
): Promise<Pair> {
  const url = new URL(link);
  const headers = { accept: 'application/json', ...agentHeaders(agent) };
  const { status, text, flaw } = await send(http, url, { headers }, LINK_MS);
  const pair = readPair(parseJson(text));
  if (pair) return pair;
  const subject = `The token link at ${url.host}`;
  if (status === 0) {
    throw new Error(
      `${subject} cannot be read (${flaw}). Check the link, the network, HTTPS_PROXY and NODE_EXTRA_CA_CERTS.`,
    );
  }
  throw new Error(
    `${subject} gives no token set (status ${status}). Check that it is the whole link. It stops working 30 days after it was made, ` +
      'or at the first refresh of its tokens: then have an administrator make a new token in the personal account. If it is a page ' +
      'for people, open it in a browser, save the JSON that it shows to a file, and run `tokens import - < file`.',
  );
}

/**
 * Reads a token set that is given as a text.
 *
 * @throws Error for the operator, which never contains the link or a token
 */
export function readTokenSet(text: string): Pair {
  const pair = readPair(parseJson(text));
  if (pair) return pair;
  throw new Error(
    'This is not a token set (JSON in UTF-8, with access_token and refresh_token). Give the link, which begins with https://, or ' +
      'the whole text that it shows in a browser, not the page itself.',
  );
}

/** The headers of all requests about tokens. */
function agentHeaders(agent: string) {
  return { 'user-agent': agent, 'api-user-agent': agent, 'accept-encoding': 'identity' };
}

/** Some services do not document the status of a success, so every 2xx that holds a token counts. */
function judge(sent: Pair, reply: Reply, endpoint: TokenEndpoint): Exchange {
  const { status, headers, text, flaw } = reply;
  const { mayKeepToken = false, lifetimes, settings } = endpoint;
  const document = parseJson(text);
  const isSuccess = status >= 200 && status < 300;
  const pair = isSuccess ? readPair(document, sent, lifetimes) : undefined;
  if (pair) {
    const isExpected = mayKeepToken || pair.refreshToken !== sent.refreshToken;
    return { kind: 'granted', pair, ...(!isExpected && { flaw: 'no new refresh token' }) };
  }
  const { error } = (document ?? {}) as { readonly error?: unknown };
  const named = typeof error === 'string' ? error : '';
  // A code is quoted, and nothing else: a description may repeat what was sent.
  const code = /^[a-z_]{1,40}$/.test(named) ? ` (${named})` : '';
  const why = `${flaw ?? `status ${status}`}${code}`;
  // Some services refuse an early refresh with a 403.
  const isRefusal = status === 400 || status === 403;
  if (isRefusal && named === 'invalid_grant') return { kind: 'invalid-grant', why };
  if (status === 429 || /THROTTL|RATE_LIMIT|TOO_MANY/i.test(named)) {
    const seconds = Number(headers['retry-after']);
    const retryAfter =
      seconds > 0 ? Math.min(seconds, LONGEST_PAUSE_MS / 1000) : DEFAULT_RETRY_AFTER;
    return { kind: 'unsent', why: `${why}: the service asks to wait`, retryAfter };
  }
  if (status === 401 || status === 403 || (status === 400 && REFUSED_UNSEEN.includes(named))) {
    const advice = `the service refuses the request itself, so check ${settings} and the proxy`;
    return { kind: 'unsent', why: `${why}: ${advice}`, isMistake: true };
  }
  return { kind: 'unclear', why, answer: text === '' ? null : text };
}

const TOO_LATE = 'it was too late to send it';

/** The errors of RFC 6749, 5.2 that refuse a request before its refresh token is used. */
const REFUSED_UNSEEN = [
  'invalid_request',
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
];

/** What arrived. `flaw`: why the answer, or its end, is missing. */
interface Reply {
  /** 0: no answer began. */
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  /** At most 64 KiB. */
  readonly text: string;
  readonly flaw?: string;
}

/** Sends one request on a new connection. Never rejects; redirects are not followed. */
async function send(
  http: Dispatcher,
  url: URL,
  options: { readonly headers: Record<string, string>; readonly body?: string },
  limitMs: number,
): Promise<Reply> {
  const { origin, pathname, search } = url;
  const late = new AbortController();
  const giveUp = () => late.abort(new PlainError(`no answer within ${limitMs / 1000} s`));
  let timer = setTimeout(() => (timer = setTimeout(giveUp, GRACE_MS)), limitMs);
  const parts: Buffer[] = [];
  let reply: Pick<Reply, 'status' | 'headers'> = { status: 0, headers: {} };
  const received = () => ({
    ...reply,
    text: Buffer.concat(parts).toString('utf8', 0, LARGEST_ANSWER),
  });
  try {
    const { statusCode, headers, body } = await http.request({
      method: options.body === undefined ? 'GET' : 'POST',
      ...options,
      origin,
      path: pathname + search,
      signal: late.signal,
      headersTimeout: 0,
      bodyTimeout: 0,
      // On a connection that was idle, a reset would leave open whether the service has processed the request.
      reset: true,
    });
    reply = { status: statusCode, headers };
    let size = 0;
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part);
      size += part.length;
      // Leaving the loop ends the download.
      if (size > LARGEST_ANSWER) return { ...received(), flaw: 'its body is too large' };
    }
    return received();
  } catch (error) {
    return { ...received(), flaw: reasonOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * undici calls `onRequestStart` once the connection is there, in the function that writes the request: between that
 * call and the write of a text body, it only assembles the headers.
 */
function beforeWriting(mayWrite: () => boolean): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const start = handler.onRequestStart?.bind(handler);
    handler.onRequestStart = (controller, context) => {
      if (mayWrite()) start?.(controller, context);
      else controller.abort(new PlainError(TOO_LATE));
    };
    return dispatch(options, handler);
  };
}

/** An error whose message explains it to the operator, without secrets. */
class PlainError extends Error {
  override readonly name = 'PlainError';
}

/** Messages of other errors may contain addresses or headers. */
function reasonOf(error: unknown): string {
  if (error instanceof PlainError) return error.message;
  const { code, name, cause } = (error ?? {}) as { code?: unknown; name?: string; cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? (name ?? 'unknown error') : reasonOf(cause);
}

/** Opens connections as the environment says: HTTPS_PROXY, HTTP_PROXY, NO_PROXY. */
export function proxyAgent(
  env: Readonly<Record<string, string | undefined>>,
  options: Agent.Options = {},
): Dispatcher {
  const value = (name: string) => env[name.toLowerCase()] ?? env[name];
  const httpProxy = withScheme(value('HTTP_PROXY'));
  const httpsProxy = withScheme(value('HTTPS_PROXY'));
  const opened = { ...options, allowH2: false };
  // With proxies, the address of each request is parsed once more, which costs as much as other steps of its way.
  if (httpProxy === '' && httpsProxy === '') return new Agent(opened);
  return new EnvHttpProxyAgent({
    ...opened,
    httpProxy,
    httpsProxy,
    noProxy: value('NO_PROXY') ?? '',
  });
}

/** A proxy without a scheme speaks plain HTTP, as for curl and Go. */
function withScheme(proxy: string | undefined): string {
  if (proxy === undefined || proxy === '') return '';
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}
