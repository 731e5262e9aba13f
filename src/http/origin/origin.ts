import { hash } from 'node:crypto';
import { isIP, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Caller, Exchange, Stage } from '../exchange.ts';
import { cors, crossSite, type CorsSettings } from './cors.ts';
import { gatewayHosts, isLoopback, knownHosts, type NamedServer } from './hosts.ts';

export interface OriginSettings extends NamedServer, CorsSettings {
  /** Undefined: callers need no credential. */
  readonly auth: object | undefined;
  readonly trustProxy: boolean;
}

/** Where requests may come from: by which host names, from which web pages, and from which address. */
export interface Origin {
  readonly corsHeaders: Stage;
  readonly knownHosts: Stage;
  readonly preflights: Stage;
  readonly crossSite: Stage;
  readonly findBudgetOwner: Stage;
}

export function createOrigin(settings: OriginSettings, log: Logger): Origin {
  const { host, allowedHosts, corsOrigins, trustProxy } = settings;
  const needsCredential = settings.auth !== undefined;
  if (!allowedHosts && !isLoopback(host) && !needsCredential) log.warn(HOSTS_ARE_NOT_LISTED);
  const { corsHeaders, preflights } = cors(settings, log);
  return {
    corsHeaders,
    knownHosts: knownHosts(gatewayHosts(settings, needsCredential)),
    preflights,
    crossSite: crossSite(corsOrigins),
    findBudgetOwner: findBudgetOwner(trustProxy),
  };
}

const HOSTS_ARE_NOT_LISTED =
  'HOST accepts connections from other machines, and callers need no credential. Until ALLOWED_HOSTS lists the host names of ' +
  'this gateway, it answers only to IP addresses and localhost, so that no web page can read it through a browser in your network.';

type BudgetOwner = NonNullable<Exchange['budgetOwner']>;

function findBudgetOwner(trustProxy: boolean): Stage {
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
