import {
  getOperationAST,
  OperationTypeNode,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import { codedError } from '../../errors.ts';
import type { Caller } from './caller.ts';
import { findRouterFields } from './router-fields.ts';

export interface ScopeRules {
  readonly callerOf: (request: Request) => Caller | undefined;
  /** `key:<name>` or `scope:<scope>` each; undefined: everybody is taken for one. */
  readonly routerCallers: readonly string[] | undefined;
}

/**
 * Refuses operations that the caller has no scope for, before they are validated: what validation says gives the
 * schema away.
 *
 * It is no validation rule: Yoga keeps the outcome of those for each document, whoever sends it next.
 */
export function enforceScopes({ callerOf, routerCallers }: ScopeRules): Plugin<YogaInitialContext> {
  return {
    onValidate({ context, params: { documentAST, schema } }) {
      const caller = callerOf(context.request);
      if (!caller) throw codedError('UNAUTHENTICATED', 'Nobody stands behind this request.');
      const document = documentAST as DocumentNode;
      const operation = getOperationAST(document, context.params.operationName);
      if (!operation) return;
      checkScope(caller, operation);
      if (routerCallers && !isRouter(caller, routerCallers)) {
        checkRouterFields(schema as GraphQLSchema, document, operation);
      }
    },
  };
}

/** Routers included: a scope more never stands for another one. */
function checkScope({ scopes }: Caller, { operation }: OperationDefinitionNode): void {
  const needed = operation === OperationTypeNode.MUTATION ? 'write' : 'read';
  if (scopes.has(needed)) return;
  const what = needed === 'write' ? 'Mutations need' : 'Queries need';
  throw forbidden(`${what} the scope "${needed}", which this credential does not have.`);
}

export function isRouter({ name, scopes }: Caller, routerCallers: readonly string[]): boolean {
  return routerCallers.some((entry) =>
    entry.startsWith('scope:') ? scopes.has(entry.slice('scope:'.length)) : entry === name,
  );
}

function checkRouterFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): void {
  const [field] = findRouterFields(schema, document, operation);
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
