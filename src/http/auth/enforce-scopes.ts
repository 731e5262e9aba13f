import { OperationTypeNode } from 'graphql';
import { codedError } from '../../errors.ts';
import type { CheckedOperation } from '../../operations/operations.ts';
import type { Stage } from '../exchange/exchange.ts';
import type { Caller } from './caller.ts';

/**
 * Refuses operations that the caller has no scope for, before anything is said about them that gives the schema
 * away, as validation does.
 *
 * @param routerCallers `key:<name>` or `scope:<scope>` each; undefined: everybody is taken for one
 */
export function enforceScopes(routerCallers: readonly string[] | undefined): Stage {
  return ({ caller, operation }) => {
    if (!caller) throw codedError('UNAUTHENTICATED', 'Nobody stands behind this request.');
    if (!operation) return undefined;
    checkScope(caller, operation);
    if (routerCallers && !isRouter(caller, routerCallers)) checkRouterFields(operation);
    return undefined;
  };
}

/** Routers included: a scope more never stands for another one. */
function checkScope({ scopes }: Caller, { type }: CheckedOperation): void {
  const needed = type === OperationTypeNode.MUTATION ? 'write' : 'read';
  if (scopes.has(needed)) return;
  const what = needed === 'write' ? 'Mutations need' : 'Queries need';
  throw forbidden(`${what} the scope "${needed}", which this credential does not have.`);
}

export function isRouter({ name, scopes }: Caller, routerCallers: readonly string[]): boolean {
  return routerCallers.some((entry) =>
    entry.startsWith('scope:') ? scopes.has(entry.slice('scope:'.length)) : entry === name,
  );
}

function checkRouterFields({ routerFields: [field] }: CheckedOperation): void {
  if (field === undefined) return;
  throw forbidden(
    `The field ${field} is for the router of the supergraph, and this credential is not that of a router: no entry of ROUTER_CALLERS names it.`,
  );
}

function forbidden(message: string) {
  return codedError('FORBIDDEN', `${message} The operator of this gateway can change that.`, {
    // As for what validation refuses: `spec` leaves 200 to callers who accept application/json.
    extensions: { http: { status: 403, spec: true } },
  });
}
