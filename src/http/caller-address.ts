import { isIP } from 'node:net';
import type { Stage } from './exchange.ts';

/**
 * Finds the IP address from which a request comes. It distinguishes callers who need no credential.
 *
 * @param trustProxy whether `X-Forwarded-For` is trusted. Only its last entry is used: the proxy that is connected
 * here wrote that one, and the caller may have written all others
 */
export function callerAddress(trustProxy: boolean): Stage {
  return (exchange) => {
    const forwarded = trustProxy ? exchange.header('x-forwarded-for') : undefined;
    const last = forwarded?.split(',').at(-1)?.trim() ?? '';
    const address = isIP(last) !== 0 ? last : exchange.node?.req.socket.remoteAddress;
    exchange.address = `address:${address}`;
    return undefined;
  };
}
