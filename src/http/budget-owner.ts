import { isIP } from 'node:net';
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
    // It is unknown if the request came without a socket.
    return { name: `address:${address ?? 'none'}`, mayDrain: true };
  };
}

/**
 * The IP address from which a request comes; undefined if it is not known.
 *
 * @param trustProxy whether `X-Forwarded-For` is trusted. Only its last entry is used: the proxy that is connected
 * here wrote that one, and the caller may have written all others
 */
function remoteAddress(inbound: Inbound, trustProxy: boolean): string | undefined {
  const last = trustProxy
    ? inbound.header('x-forwarded-for')?.split(',').at(-1)?.trim()
    : undefined;
  return last !== undefined && isIP(last) !== 0 ? last : inbound.peer;
}
