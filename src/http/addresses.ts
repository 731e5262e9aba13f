import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { codedError } from '../errors.ts';
import { JSON_TYPE } from './accept.ts';
import {
  errorReply,
  type Check,
  type Stage,
  type Exchange,
  type Reply,
  type Caller,
  isProbe,
} from './exchange.ts';

interface OriginSettings extends NamedServer, CorsSettings {
  /** Undefined: callers need no credential. */
  readonly auth: object | undefined;
  readonly trustProxy: boolean;
  /** Whether pages of this machine may read answers, which contain only made-up people. */
  readonly isSandbox: boolean;
}

/** Where requests may come from: by which host names, from which web pages, and from which address. */
export function createOrigin(settings: OriginSettings, log: Logger) {
  const { host, allowedHosts, trustProxy } = settings;
  const needsCredential = settings.auth !== undefined;
  if (!allowedHosts && !isLoopback(host) && !needsCredential) log.warn(HOSTS_ARE_NOT_LISTED);
  const isListed = listedOrigins(settings);
  const { corsHeaders, preflights } = cors(settings, isListed, log);
  return {
    corsHeaders,
    knownHosts: knownHosts(gatewayHosts(settings, needsCredential)),
    preflights,
    crossSite: crossSite(isListed),
    findBudgetOwner: findBudgetOwner(trustProxy),
  };
}

const HOSTS_ARE_NOT_LISTED =
  'HOST accepts connections from other machines, and callers need no credential. Until ALLOWED_HOSTS lists the host names of ' +
  'this gateway, it answers only to IP addresses and localhost, so that no web page can read it through a browser in your network.';

/** Whether a `Host` header names this server; true if the request has none, as HTTP/1.0 may. */
type IsOurHost = (host: string | undefined) => boolean;

interface NamedServer {
  /** The address on which it listens. */
  readonly host: string;
  /** Without ports; undefined: ALLOWED_HOSTS is not set. */
  readonly allowedHosts: readonly string[] | undefined;
}

/** Refuses requests under a host name that is not the gateway's. */
function knownHosts(isOurHost: IsOurHost): Stage {
  return ({ host }) => (isOurHost(host) ? undefined : OTHER_HOST);
}

/** The answer to a request under a host name that is not the gateway's. */
const MISDIRECTED =
  'The host name of this request is not one of this gateway. If it should be, the operator of the gateway adds it to ALLOWED_HOSTS.';

/** RFC 9110, 15.5.20. It does not list the accepted names, which may be internal. */
const OTHER_HOST = errorReply(421, codedError('FORBIDDEN', MISDIRECTED));

/**
 * The host names by which callers may address the gateway.
 *
 * The owner of any domain can make it resolve to this server (DNS rebinding): a browser then considers a page of that
 * domain to have the same origin as the gateway, and lets it send requests and read answers. But the page cannot choose
 * the host name that the browser sends.
 *
 * @param needsCredential whether callers need a credential. Such a page has none, so that without ALLOWED_HOSTS any
 * name is accepted
 */
function gatewayHosts({ host, allowedHosts }: NamedServer, needsCredential: boolean): IsOurHost {
  if (allowedHosts) return named(listed(allowedHosts));
  if (isLoopback(host)) return named((name) => isLoopback(name) || name === plain(host));
  return needsCredential ? () => true : named(isUnownable(host));
}

/** The host names of the admin address. Scrapers use its IP address, or a name of the gateway. */
export function adminHosts({ host, allowedHosts = [] }: NamedServer): IsOurHost {
  const isListed = listed(allowedHosts);
  const isDefault = isLoopback(host) ? isLoopback : isUnownable(host);
  return named((name) => isListed(name) || isDefault(name));
}

/** @param name without the brackets around an IPv6 address */
function isLoopback(name: string): boolean {
  // *.localhost is reserved and never resolved by DNS (RFC 6761, 6.3), so that no attacker can own a name in it.
  return /^(.+\.)?localhost$/.test(name) || /^127(\.\d+){3}$/.test(name) || name === '::1';
}

/** Matches names that an attacker cannot own: loopback names, IP addresses (DNS rebinding needs a name), and `host`. */
function isUnownable(host: string): (name: string) => boolean {
  return (name) => isLoopback(name) || isIP(name) !== 0 || name === plain(host);
}

function listed(hosts: readonly string[]): (name: string) => boolean {
  const names = new Set(hosts.map(plain));
  return (name) => names.has(name);
}

function named(isOurs: (name: string) => boolean): IsOurHost {
  // Each name is parsed once, because that costs as much as all other stages of a request together.
  const known = new Set<string>();
  return (host) => {
    // A browser always sends a host, so that a request without one cannot come from a web page.
    if (host === undefined || known.has(host)) return true;
    if (!isOurs(plain(host))) return false;
    if (known.size < MAX_KNOWN) known.add(host);
    return true;
  };
}

/** An accepted name can be written in many ways, and some settings accept any number of names. */
const MAX_KNOWN = 100;

/** The canonical form of a name: in lower case, without port, brackets, and the final dot of the DNS root. */
function plain(host: string): string {
  const address = `http://${isIP(host) === 6 ? `[${host}]` : host}`;
  const { hostname } = URL.canParse(address) ? new URL(address) : { hostname: host };
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

type IsListed = (origin: string | undefined) => boolean;

/** The origins whose pages may read answers. */
function listedOrigins({ corsOrigins, isSandbox }: OriginSettings): IsListed {
  return (origin) =>
    origin !== undefined &&
    (corsOrigins.includes(origin) || (isSandbox && isOfThisMachine(origin)));
}

/** Whether a page of this origin comes from a server on the machine of its reader, which no attacker can imitate. */
function isOfThisMachine(origin: string): boolean {
  return isOrigin(origin) && isLoopback(plain(new URL(origin).host));
}

/** Whether a browser could have written this as the origin of a page. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

interface CorsSettings {
  /** The origins whose pages may read answers, as browsers write them. */
  readonly corsOrigins: readonly string[];
}

/**
 * Allows pages of the listed origins to send requests and read the answers. Pages of other origins get no CORS header,
 * so that browsers do not let them send JSON: their preflight is refused with a message that says what to do.
 *
 * Browser credentials (`access-control-allow-credentials`) are never allowed. The gateway uses no cookies: a page sends
 * its credential in a header that it sets itself. Otherwise a browser would add what it stores for this host.
 */
function cors(
  { corsOrigins, isSandbox }: OriginSettings,
  isListed: IsListed,
  log: Logger,
): {
  /** Adds to every answer which origin may read it. */
  readonly corsHeaders: Stage;
  /** Answers preflights. */
  readonly preflights: Stage;
} {
  const report = reportOnce(log);
  const allowed = allowedPreflight(SENDABLE);
  return {
    corsHeaders: (exchange) => {
      if (corsOrigins.length === 0 && !isSandbox) return undefined;
      const { replyHeaders } = exchange;
      // Also without an origin: a cache must not return that answer to a page.
      replyHeaders['vary'] = 'Origin';
      const origin = exchange.header('origin');
      if (origin === undefined || !isListed(origin)) return undefined;
      replyHeaders['access-control-allow-origin'] = origin;
      replyHeaders['access-control-expose-headers'] = READABLE;
      return undefined;
    },
    preflights: (exchange) => {
      if (!isPreflight(exchange)) return undefined;
      const origin = exchange.header('origin')!;
      if (isListed(origin)) return allowed;
      report(origin, exchange.requestId);
      return OTHER_ORIGIN;
    },
  };
}

function isPreflight(exchange: Exchange): boolean {
  return (
    exchange.method === 'OPTIONS' &&
    exchange.header('access-control-request-method') !== undefined &&
    exchange.header('origin') !== undefined
  );
}

/** Logs each origin once, and at most 20: anyone can send any origin, as often as they like. */
function reportOnce(log: Logger): (origin: string, requestId: string) => void {
  const reported = new Set<string>();
  return (origin, requestId) => {
    if (!isOrigin(origin) || reported.has(origin) || reported.size >= MOST_REPORTED) return;
    reported.add(origin);
    log.warn(
      { requestId, origin },
      'a preflight was refused, because its origin is not listed. To allow pages of this origin, add it to CORS_ORIGINS.',
    );
  };
}

const MOST_REPORTED = 20;

const SENDABLE = [
  'content-type',
  'authorization',
  'x-api-key',
  'apollo-require-preflight',
  'x-apollo-operation-name',
  'graphql-client-name',
  'graphql-client-version',
  'apollographql-client-name',
  'apollographql-client-version',
  'x-request-id',
  'traceparent',
  'tracestate',
];

const READABLE = 'retry-after, www-authenticate, x-request-id';

function allowedPreflight(sendable: readonly string[]): Reply {
  return {
    status: 204,
    headers: {
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': [...new Set(sendable)].join(', '),
      // Two hours, the longest time that Chromium accepts.
      'access-control-max-age': '7200',
    },
  };
}

const UNLISTED_ORIGIN =
  'This request comes from a web page of an origin that is not allowed. To allow it, the operator of this gateway adds that origin to CORS_ORIGINS.';

const OTHER_ORIGIN = errorReply(403, codedError('FORBIDDEN', UNLISTED_ORIGIN));

/**
 * Refuses operations from pages of other sites that are not listed, whether they could read the answer or not.
 *
 * A page can send a GET without a preflight, even by an image or a link. So a GET must have a header that a browser
 * sends to another origin only after a preflight allowed it. The content type of a POST is such a header.
 */
function crossSite(isListed: IsListed): Stage {
  return (exchange) => {
    if (isOfAnotherSite(exchange) && !isListed(exchange.header('origin'))) {
      throw codedError('FORBIDDEN', UNLISTED_ORIGIN, { extensions: { http: { status: 403 } } });
    }
    if (exchange.method !== 'GET' || isPreflighted(exchange)) return undefined;
    throw codedError(
      'BAD_USER_INPUT',
      'A query in the address needs a header that pages of other sites cannot send. Add "apollo-require-preflight: true", or use POST.',
      { extensions: { http: { status: 400 } } },
    );
  };
}

/**
 * Browsers set this header, and no page can forge it. `Origin` is not enough: behind a proxy, a page of the gateway's
 * own origin may have another host name than the one that the proxy sends.
 */
function isOfAnotherSite(exchange: Exchange): boolean {
  const site = exchange.header('sec-fetch-site');
  return site === 'cross-site' || site === 'same-site';
}

const PREFLIGHTED = ['apollo-require-preflight', 'x-apollo-operation-name', 'x-api-key'];

function isPreflighted(exchange: Exchange): boolean {
  const isJson = /^application\/json\s*(;|$)/i.test(exchange.header('content-type') ?? '');
  // Only this scheme: for others a browser may add a stored password to the request of any page.
  const isBearer = /^Bearer /i.test(exchange.header('authorization') ?? '');
  return isJson || isBearer || PREFLIGHTED.some((name) => exchange.header(name) !== undefined);
}

type BudgetOwner = NonNullable<Exchange['budgetOwner']>;

function findBudgetOwner(trustProxy: boolean): Check {
  // By the address as the socket writes it, because parsing an address costs as much as several other stages.
  const known = new LRUCache<string, BudgetOwner>({ max: 1_000 });
  return (exchange) => {
    const { caller, peer = '' } = exchange;
    const isPeer = !caller && !(trustProxy && exchange.header('x-forwarded-for') !== undefined);
    let owner = isPeer ? known.get(peer) : undefined;
    if (!owner) {
      owner = budgetOwnerOf(caller, caller ? undefined : remoteAddress(exchange, trustProxy));
      if (isPeer) known.set(peer, owner);
    }
    exchange.budgetOwner = owner;
    return undefined;
  };
}

/**
 * The owner of the budget that an operation is charged to. If callers need no credential, their address distinguishes
 * them, and all of them may drain.
 *
 * @param address undefined: the request came without a socket
 */
export function budgetOwnerOf(
  caller: Caller | undefined,
  address: string | undefined,
): BudgetOwner {
  if (caller) return { name: shortened(caller.name), mayDrain: caller.scopes.has('drain') };
  return { name: `address:${address === undefined ? 'none' : networkOf(address)}`, mayDrain: true };
}

/** The subject of a token may have thousands of characters, and the name is kept for as long as the budget is not full. */
function shortened(name: string): string {
  return name.length > LONGEST_NAME ? `long:${hash('sha256', name, 'base64url')}` : name;
}

const LONGEST_NAME = 256;

/** The first 64 bits of an IPv6 address: every caller can choose among the addresses of such a network. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}

/**
 * The IP address from which a request comes, in the form that URLs have; undefined if it is not known.
 *
 * @param trustProxy whether `X-Forwarded-For` is trusted. Only its last entry is used: the proxy that is connected
 * here wrote that one, and the caller may have written all others
 */
export function remoteAddress(
  exchange: Pick<Exchange, 'header' | 'peer'>,
  trustProxy: boolean,
): string | undefined {
  const forwarded = trustProxy ? exchange.header('x-forwarded-for') : undefined;
  const last = (forwarded ?? '').split(',').at(-1)!;
  return readAddress(last) ?? readAddress(exchange.peer ?? '');
}

/** Some proxies append a port, and sockets of both IP versions write `::ffff:` before an IPv4 address. */
function readAddress(text: string): string | undefined {
  if (text === '') return undefined;
  const address = text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1')
    .replace(/^::ffff:(?=[\d.]+$)/i, '')
    .replace(/%.*$/, '');
  if (isIP(address) === 0) return undefined;
  // An IPv6 address can be written in many ways, and one caller must have one budget.
  return isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}

/** What is served at which path: the probes, and GraphQL. */
export function createPaths(isReady: () => boolean) {
  return {
    /** Replies that the process is alive. */
    health: ({ path }) => (path === '/health' ? OK : undefined),
    /** Replies whether requests may be sent to this process, without a reason. */
    readiness: ({ path }) => (path === '/ready' ? readinessReply(isReady()) : undefined),
    /** Replies 404 to every other path than that of GraphQL. */
    graphqlOnly: ({ path }) => (isGraphqlPath(path) ? undefined : NOT_FOUND),
  } satisfies Record<string, Stage>;
}

const OK: Reply = { status: 200, headers: {} };

function readinessReply(ready: boolean): Reply {
  return {
    status: ready ? 200 : 503,
    headers: { 'content-type': JSON_TYPE, 'cache-control': 'no-store' },
    body: JSON.stringify({ ready }),
  };
}

const NOT_FOUND: Reply = {
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Nothing is served under this path. The path of GraphQL is /graphql.\n',
};

const GRAPHQL: ReadonlySet<string> = new Set(['/graphql', '/graphql/']);

export function isGraphqlPath(path: string): boolean {
  return GRAPHQL.has(path);
}

export function isKnownPath(path: string): boolean {
  return isGraphqlPath(path) || isProbe(path);
}

interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
}

const UNREADABLE = 'The metrics cannot be read. The log of the gateway has the reason.';

/** The handler of the admin address, which serves only GET /metrics. */
export function adminHandler(
  metrics: Metrics,
  isOurHost: (host: string | undefined) => boolean,
  log: Logger,
) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isOurHost(request.headers.host)) {
      return void response.writeHead(421).end(`${MISDIRECTED}\n`);
    }
    const path = request.url?.split('?', 1)[0];
    if (path !== '/metrics') return void response.writeHead(404).end();
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return void response.writeHead(405, { allow: 'GET, HEAD' }).end();
    }
    try {
      const text = await metrics.text();
      response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
    } catch (error) {
      log.error({ err: error }, 'the metrics cannot be read');
      response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(`${UNREADABLE}\n`);
    }
  };
}
