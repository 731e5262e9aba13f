import { isIP, isIPv6 } from 'node:net';
import type { Ready } from './answers.ts';
import type { Exchange } from './exchange.ts';
import type { Inbound } from './inbound.ts';

type BudgetOwner = Ready['budgetOwner'];

/**
 * Finds the owner of the budget that an operation is charged to. If callers need no credential, their address
 * distinguishes them, and all of them may drain.
 *
 * @param trustProxy whether `X-Forwarded-For` is trusted
 */
export function budgetOwner(trustProxy: boolean): (exchange: Exchange) => BudgetOwner {
  return ({ caller, inbound }) => {
    if (caller) return { name: caller.name, mayDrain: caller.scopes.has('drain') };
    const address = remoteAddress(inbound, trustProxy);
    // Undefined: the request came without a socket.
    const name = `address:${address === undefined ? 'none' : networkOf(address)}`;
    return { name, mayDrain: true };
  };
}

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
function remoteAddress(inbound: Inbound, trustProxy: boolean): string | undefined {
  const forwarded = trustProxy ? inbound.header('x-forwarded-for') : undefined;
  const last = (forwarded ?? '').split(',').at(-1)!;
  return readAddress(last) ?? readAddress(inbound.peer ?? '');
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
