import { setImmediate as nextTurn } from 'node:timers/promises';
import { OperationTypeNode, type DocumentNode, type GraphQLSchema } from 'graphql';
import type { Caller, CallVariables } from '../engine/call.ts';
import type { Plan } from '../engine/plan.ts';
import { badRequest, codedError, forbidden } from '../errors.ts';
import { tooComplex } from '../operations/limits.ts';
import type { CheckedOperation, Operations } from '../operations/operations.ts';
import type { TrustedDocuments } from '../operations/trusted-documents.ts';
import { coerceVariables } from '../operations/variables.ts';
import { enforceScopes } from '../schema/field-scopes.ts';
import type { Exchange } from './exchange.ts';

/** The parameters of a GraphQL request. */
export type Params = Readonly<Record<string, unknown>>;

/** An operation that its caller may execute, with the values of its variables. */
export interface Ready {
  readonly exchange: Exchange;
  readonly operation: CheckedOperation<Plan>;
  readonly variables: CallVariables;
}

interface OperationParts {
  readonly operations: Operations<Plan>;
  /** The offered schema: what callers see, with what a company adds. */
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  /** Undefined: there are none. */
  readonly trusted: TrustedDocuments | undefined;
  /** Whether all other operations are refused, except for routers. */
  readonly trustedDocumentsOnly: boolean;
  /** Reads the parameters of a request, unchecked. */
  readonly read: (exchange: Exchange) => Promise<Params>;
}

/** The scope of the fields `_entities` and `_service`. A caller without credentials is no router. */
export const ROUTER = 'router';

/** The steps from what a request says to an operation that its caller may execute. */
export class OperationSteps {
  readonly #parts: OperationParts;
  /** Resolved when it is the turn of the next new text. */
  #turns = Promise.resolve();
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(parts: OperationParts) {
    this.#parts = parts;
  }

  /**
   * Reads the parameters of a request, and replaces the id of a trusted document by its text. A request never registers
   * one: clients that try automatic persisted queries get an error that says so, and send the text.
   *
   * @throws coded errors for parameters that a GraphQL request does not have
   */
  async params(exchange: Exchange): Promise<Params> {
    const params = this.#paramsIn(await this.#parts.read(exchange), exchange);
    const text = params['query'] as string;
    if (!this.#parts.operations.isKept(text)) await (this.#waiting.get(text) ?? this.#turnOf(text));
    return params;
  }

  /**
   * Waits for the turn of a new text. To check one may take 50 ms: those that arrive together would be checked in one turn
   * of the event loop, and nothing else would be served meanwhile. Equal ones go on together, in their order.
   */
  #turnOf(text: string): Promise<void> {
    const turn = this.#turns.then(() => nextTurn()).finally(() => this.#waiting.delete(text));
    this.#turns = turn;
    this.#waiting.set(text, turn);
    return turn;
  }

  #paramsIn(sent: Params, exchange: Exchange): Params {
    const { trusted, trustedDocumentsOnly } = this.#parts;
    const { documentId, operationName, variables, extensions } = sent;
    const hash = hashOf(sent);
    const named = typeof documentId === 'string' ? documentId : hash;
    const id = sent['query'] ? undefined : named;
    if (id === undefined && trustedDocumentsOnly && !isRouter(exchange)) throw forbidden(UNTRUSTED);
    if (id === undefined || (!trusted && hash === undefined)) return checkedParams(sent);
    if (!trusted) throw notPersisted('PERSISTED_QUERY_NOT_SUPPORTED');
    const query = trusted.get(id);
    if (query === undefined) {
      throw id === documentId ? unknownId() : notPersisted('PERSISTED_QUERY_NOT_FOUND');
    }
    exchange.trustedName = id;
    return checkedParams({ query, operationName, variables, extensions });
  }

  /** Finds the operation of a text, or of a document that a plugin has made. */
  find(exchange: Exchange, query: unknown, operationName: unknown): CheckedOperation<Plan> {
    const { operations } = this.#parts;
    const operation =
      typeof query === 'string'
        ? operations.find(query, operationName)
        : operations.findDocument(query as DocumentNode, operationName);
    if (exchange.trustedName !== '') exchange.trustedName = operation.name ?? exchange.trustedName;
    if (operation.type === OperationTypeNode.MUTATION && exchange.method !== 'POST') {
      throw otherMethod('POST', 'A GET request cannot execute a mutation. Send it with POST.');
    }
    return operation;
  }

  /** Finds an operation, and refuses one that its caller may not execute. The order matters for security. */
  check(exchange: Exchange, query: unknown, operationName: unknown): CheckedOperation<Plan> {
    const operation = this.find(exchange, query, operationName);
    // Before validation, which a hostile document makes expensive, and whose errors reveal the schema.
    const excess = operation.excess(isRouter(exchange));
    if (excess.length > 0) throw tooComplex(excess.join(' '));
    if (exchange.caller) enforceCallerScopes(operation, exchange.caller);
    if (!this.#parts.introspection && operation.routerFields.includes('_service')) {
      if (!isRouter(exchange)) throw forbidden(CONCEALED);
    }
    this.#refuseInvalid(operation);
    // After validation: it reads the types of fields.
    enforceScopes(operation.scopedUses, exchange.caller);
    return operation;
  }

  /** Checks an operation, and the values of its variables. */
  ready(exchange: Exchange, query: unknown, operationName: unknown, sent: unknown): Ready {
    const operation = this.check(exchange, query, operationName);
    const { schema, introspection } = this.#parts;
    // From here on, telemetry counts the request as an executed operation.
    exchange.operationType = operation.type;
    const variables = coerceVariables(operation.operation, (sent ?? {}) as Params, {
      schema,
      hideSuggestions: !introspection,
    });
    return { exchange, operation, variables };
  }

  #refuseInvalid(operation: CheckedOperation): void {
    const errors = operation.errors();
    if (errors.length > 0) throw new AggregateError(errors);
    // Validation does not report a missing root type: without one it knows none of the fields.
    if (this.#parts.schema.getRootType(operation.type)) return;
    throw codedError(
      'BAD_USER_INPUT',
      `The schema has no type for a ${operation.type}. Send an operation of another type.`,
    );
  }
}

function isRouter({ caller }: Exchange): boolean {
  return caller?.scopes.has(ROUTER) === true;
}

const NAMES: ReadonlySet<string> = new Set(['query', 'variables', 'operationName', 'extensions']);

function checkedParams(params: Params): Params {
  for (const name in params) {
    if (NAMES.has(name) || params[name] === null || params[name] === undefined) continue;
    throw badRequest(`The request has an unknown parameter "${name}". Remove it.`);
  }
  if (typeof params['query'] !== 'string') {
    throw badRequest('The request has no "query". Send the text of an operation.');
  }
  for (const name of ['variables', 'extensions']) {
    const value = params[name] ?? {};
    if (typeof value === 'object' && !Array.isArray(value)) continue;
    throw badRequest(`The "${name}" of the request must be an object. Correct them, or omit them.`);
  }
  return params;
}

/** The hash that Apollo and urql send, of a trusted document or in automatic persisted queries. */
function hashOf(params: Params): string | undefined {
  const { persistedQuery } = (params['extensions'] ?? {}) as { persistedQuery?: Params | null };
  const hash = persistedQuery?.['sha256Hash'];
  return typeof hash === 'string' ? hash : undefined;
}

const UNTRUSTED =
  'This gateway accepts only trusted documents. Send the "documentId" of one instead of a "query"; the operator of this gateway can add operations to its manifest.';

function unknownId() {
  return codedError(
    'PERSISTED_QUERY_NOT_FOUND',
    'No trusted document has this id. The operator of this gateway adds documents to its manifest, which is read at the start; a request cannot register them.',
    { extensions: { http: { status: 400 } } },
  );
}

/**
 * An error of the protocol of automatic persisted queries. Clients recognize it by its message and send the text: with
 * the hash again if it was not found, without hashes from now on if they are not supported.
 */
function notPersisted(code: 'PERSISTED_QUERY_NOT_FOUND' | 'PERSISTED_QUERY_NOT_SUPPORTED') {
  const message =
    code === 'PERSISTED_QUERY_NOT_FOUND' ? 'PersistedQueryNotFound' : 'PersistedQueryNotSupported';
  return codedError(code, message, { extensions: { http: { status: 200 } } });
}

/** Applies to routers too: no scope includes another one. */
function enforceCallerScopes({ type, routerFields }: CheckedOperation, { scopes }: Caller): void {
  const [what, needed] =
    type === OperationTypeNode.MUTATION ? ['Mutations need', 'write'] : ['Queries need', 'read'];
  if (!scopes.has(needed)) throw forbidden(`${what} the scope "${needed}", ${WITHOUT_IT}`);
  const [field] = routerFields;
  if (field === undefined || scopes.has(ROUTER)) return;
  throw forbidden(
    `The field ${field} is for the router of the supergraph. It needs the scope "${ROUTER}", ${WITHOUT_IT}`,
  );
}

const WITHOUT_IT =
  'which this credential does not have. The operator of this gateway can grant it.';

export function otherMethod(allowed: string, message: string) {
  const http = { status: 405, headers: { Allow: allowed }, isForAll: true };
  return codedError('BAD_USER_INPUT', message, { extensions: { http } });
}

const CONCEALED =
  "The SDL of this subgraph is not served: introspection is off, and this credential is not a router's. " +
  'The operator of this gateway can print it with "schema print --subgraph".';
