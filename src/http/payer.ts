import { isIPv6 } from 'node:net';
import type { Caller } from './auth/caller.ts';

/** In whose name pages are charged, and whether they may be many. */
export interface Payer {
  readonly name: string;
  readonly mayDrain: boolean;
}

/**
 * Where nobody is asked who they are, the address tells callers apart, and nobody lacks a scope.
 *
 * @param address undefined: not over a socket
 */
export function payerOf(caller: Caller | undefined, address: string | undefined): Payer {
  if (caller) return { name: caller.name, mayDrain: caller.scopes.has('drain') };
  return { name: `address:${address === undefined ? 'none' : networkOf(address)}`, mayDrain: true };
}

/** Of IPv6 everybody has a network of at least 64 bits to take addresses from. The address is written as URLs have it. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}
