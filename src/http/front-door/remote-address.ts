import type { IncomingMessage } from 'node:http';
import { isIP, isIPv6 } from 'node:net';

/** As Yoga hands it on: without `req` where no Node server took the request. */
export interface ServerContext {
  readonly req?: IncomingMessage | undefined;
}

/**
 * The IP address that a request comes from; undefined where there is none to be had.
 *
 * @param trustProxy whether `X-Forwarded-For` is believed. Of its entries the last alone: that one was written by
 * the proxy which is connected here, all before it by whoever came to the proxy
 */
export function remoteAddress({ req }: ServerContext, trustProxy: boolean): string | undefined {
  const forwarded = trustProxy ? req?.headers['x-forwarded-for'] : undefined;
  const last = String(forwarded ?? '')
    .split(',')
    .at(-1)!;
  return readAddress(last) ?? readAddress(req?.socket.remoteAddress ?? '');
}

/** Some proxies write a port behind it, and sockets of both families put `::ffff:` before an address of IPv4. */
function readAddress(text: string): string | undefined {
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
