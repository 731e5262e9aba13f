import { isIP, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Caller } from '../auth/caller.ts';
import type { Exchange, Payer, Stage } from '../exchange/exchange.ts';

/** Says who pays for what an operation costs. */
export function findPayer(trustProxy: boolean): Stage {
  // By the peer's address as the socket writes it: to read one costs as much as several other stages.
  const known = new LRUCache<string, Payer>({ max: 1_000 });
  return (exchange) => {
    const { caller, peer = '' } = exchange;
    const isPeer = !caller && !(trustProxy && exchange.header('x-forwarded-for') !== undefined);
    let payer = isPeer ? known.get(peer) : undefined;
    if (!payer) {
      payer = payerOf(caller, caller ? undefined : remoteAddress(exchange, trustProxy));
      if (isPeer) known.set(peer, payer);
    }
    exchange.payer = payer;
    return undefined;
  };
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

/**
 * The IP address that a request comes from; undefined where there is none to be had.
 *
 * @param trustProxy whether `X-Forwarded-For` is believed. Of its entries the last alone: that one was written by
 * the proxy which is connected here, all before it by whoever came to the proxy
 */
export function remoteAddress(
  exchange: Pick<Exchange, 'header' | 'peer'>,
  trustProxy: boolean,
): string | undefined {
  const forwarded = trustProxy ? exchange.header('x-forwarded-for') : undefined;
  const last = (forwarded ?? '').split(',').at(-1)!;
  return readAddress(last) ?? readAddress(exchange.peer ?? '');
}

/** Some proxies write a port behind it, and sockets of both families put `::ffff:` before an address of IPv4. */
function readAddress(text: string): string | undefined {
  if (text === '') return undefined;
  const address = text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1')
    .replace(/^::ffff:(?=[\d.]+$)/i, '')
    .replace(/%.*$/, '');
  if (isIP(address) === 0) return undefined;
  // One address has many spellings in IPv6, and a caller shall have one budget.
  return isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}
