import { isIP } from 'node:net';
import type { Exchange, Stage } from './exchange.ts';

/**
 * Finds the owner of the budget that an operation is charged to. If callers need no credential, their address
 * distinguishes them, and all of them may drain.
 *
 * @param trustProxy whether `X-Forwarded-For` is trusted
 */
export function budgetOwner(trustProxy: boolean): Stage {
  return (exchange) => {
    const { caller } = exchange;
    exchange.budgetOwner = caller
      ? { name: caller.name, mayDrain: caller.scopes.has('drain') }
      : { name: `address:${remoteAddress(exchange, trustProxy)}`, mayDrain: true };
    return undefined;
  };
}

/**
 * The IP address from which a request comes; undefined if it came without a socket.
 *
 * @param trustProxy whether `X-Forwarded-For` is trusted. Only its last entry is used: the proxy that is connected
 * here wrote that one, and the caller may have written all others
 */
function remoteAddress(exchange: Exchange, trustProxy: boolean): string | undefined {
  const last = trustProxy
    ? exchange.header('x-forwarded-for')?.split(',').at(-1)?.trim()
    : undefined;
  return last !== undefined && isIP(last) !== 0 ? last : exchange.node?.req.socket.remoteAddress;
}
