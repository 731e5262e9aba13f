import { isIP } from 'node:net';
import { codedError } from '../errors.ts';
import type { Stage } from './exchange.ts';

interface NamedServer {
  /** The address on which it listens. */
  readonly host: string;
  /** Without ports; undefined: ALLOWED_HOSTS is not set. */
  readonly allowedHosts: readonly string[] | undefined;
}

/**
 * Refuses requests under a host name that is not the gateway's.
 *
 * The owner of any domain can make it resolve to this server (DNS rebinding): a browser then considers a page of that
 * domain to have the same origin as the gateway, and lets it send requests and read answers. But the page cannot choose
 * the host name that the browser sends.
 *
 * @param needsCredential whether callers need a credential. Such a page has none, so that without ALLOWED_HOSTS any
 * name is accepted
 */
export function knownHosts({ host, allowedHosts }: NamedServer, needsCredential: boolean): Stage {
  const names = allowedHosts?.map(plainHost);
  const isOurs = (name: string): boolean => {
    if (names) return names.includes(name);
    if (isLoopback(host)) return isLoopback(name);
    // No attacker can own an IP address.
    return needsCredential || isLoopback(name) || isIP(name) !== 0;
  };
  // Nearly all requests have the same: to parse it costs as much as to parse a body.
  let accepted: string | undefined;
  return ({ host: sent }) => {
    // A browser always sends a host, so that a request without one cannot come from a web page.
    if (sent === undefined || sent === accepted) return undefined;
    if (!isOurs(plainHost(sent))) {
      throw codedError('FORBIDDEN', OTHER_HOST, { extensions: { http: { status: 421 } } });
    }
    accepted = sent;
    return undefined;
  };
}

/** RFC 9110, 15.5.20. It does not list the accepted names, which may be internal. */
const OTHER_HOST =
  'The host name of this request is not one of this gateway. If it should be, the operator of the gateway adds it to ALLOWED_HOSTS.';

/** @param name without the brackets around an IPv6 address */
function isLoopback(name: string): boolean {
  // *.localhost is reserved and never resolved by DNS (RFC 6761, 6.3), so that no attacker can own a name in it.
  return /^(.+\.)?localhost$/.test(name) || /^127(\.\d+){3}$/.test(name) || name === '::1';
}

/** The canonical form of a name: in lower case, without port, brackets, and the final dot of the DNS root. */
function plainHost(host: string): string {
  const address = `http://${isIP(host) === 6 ? `[${host}]` : host}`;
  const { hostname } = URL.canParse(address) ? new URL(address) : { hostname: host };
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}
