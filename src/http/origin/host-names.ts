import { isIP } from 'node:net';

/** Whether a `Host` names this server; undefined for a request that names none, as HTTP/1.0 may. */
export type IsOurHost = (host: string | undefined) => boolean;

export interface NamedServer {
  /** What it listens on. */
  readonly host: string;
  /** Without ports; undefined: not said. */
  readonly allowedHosts: readonly string[] | undefined;
}

/**
 * The names that callers may use.
 *
 * Whoever owns a domain can let it lead here (DNS rebinding): to a browser his page is then of one origin with
 * the gateway, and may ask and read. What he cannot choose is the name that the browser sends along.
 *
 * @param asksWho whether callers have to say who they are: such a page has no credential to send, so that any
 * name will do where nobody said which ones there are
 */
export function gatewayHosts({ host, allowedHosts }: NamedServer, asksWho: boolean): IsOurHost {
  if (allowedHosts) return named(listed(allowedHosts));
  if (isLoopback(host)) return named((name) => isLoopback(name) || name === plain(host));
  return asksWho ? () => true : named(notOfOthers(host));
}

/** Those of the admin address, which scrapers call by its IP address, or by a name of the gateway. */
export function adminHosts({ host, allowedHosts = [] }: NamedServer): IsOurHost {
  const isListed = listed(allowedHosts);
  const isDefault = isLoopback(host) ? isLoopback : notOfOthers(host);
  return named((name) => isListed(name) || isDefault(name));
}

/** Without brackets around an address of IPv6. */
export function isLoopback(name: string): boolean {
  // *.localhost is kept out of the DNS (RFC 6761, 6.3), so that nobody owns a part of it.
  return /^(.+\.)?localhost$/.test(name) || /^127(\.\d+){3}$/.test(name) || name === '::1';
}

/** No name that somebody else could own: DNS leads to addresses, and never comes from one. */
function notOfOthers(host: string): (name: string) => boolean {
  return (name) => isLoopback(name) || isIP(name) !== 0 || name === plain(host);
}

function listed(hosts: readonly string[]): (name: string) => boolean {
  const names = new Set(hosts.map(plain));
  return (name) => names.has(name);
}

function named(isOurs: (name: string) => boolean): IsOurHost {
  // A name is looked at once: to read one costs as much as the rest of the way of a request.
  const known = new Set<string>();
  return (host) => {
    // Browsers always send one.
    if (host === undefined || known.has(host)) return true;
    if (!isOurs(plain(host))) return false;
    if (known.size < MAX_KNOWN) known.add(host);
    return true;
  };
}

/** Ours in all the ways to write them. Where any name will do there is no end to them. */
const MAX_KNOWN = 100;

/** One way to write a name: in lower case, without port, brackets, and the dot of the root at its end. */
function plain(host: string): string {
  const address = `http://${isIP(host) === 6 ? `[${host}]` : host}`;
  const { hostname } = URL.canParse(address) ? new URL(address) : { hostname: host };
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}
