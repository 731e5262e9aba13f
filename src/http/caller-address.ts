import { isIP } from 'node:net';
import type { Stage } from './exchange.ts';

/**
 * Finds the owner of the budget that an operation is charged to. If callers need no credential, the IP address from
 * which the request comes distinguishes them, and all of them may drain.
 *
 * @param trustProxy whether `X-Forwarded-For` is trusted. Only its last entry is used: the proxy that is connected
 * here wrote that one, and the caller may have written all others
 */
export function budgetOwner(trustProxy: boolean): Stage {
  return (exchange) => {
    const { caller, node } = exchange;
    const forwarded = trustProxy ? exchange.header('x-forwarded-for') : undefined;
    const last = forwarded?.split(',').at(-1)?.trim() ?? '';
    const address = isIP(last) !== 0 ? last : node?.req.socket.remoteAddress;
    exchange.budgetOwner = caller
      ? { name: caller.name, mayDrain: caller.scopes.has('drain') }
      : { name: `address:${address}`, mayDrain: true };
    return undefined;
  };
}
