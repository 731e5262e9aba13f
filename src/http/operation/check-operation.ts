import { getVariableValues, OperationTypeNode, type GraphQLSchema } from 'graphql';
import { codedError } from '../../errors.ts';
import { tooComplex } from '../../operations/limits.ts';
import type { CheckedOperation, Operations } from '../../operations/operations.ts';
import type { Exchange, Params, Reply, Stage } from '../exchange/exchange.ts';

export interface OperationChecks<Plan> {
  readonly operations: Operations<Plan>;
  /** The one that is served. */
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  /** Whether a request comes with the credential of a router. */
  readonly isRouter: (exchange: Exchange) => boolean;
  readonly answer: Answer<Plan>;
}

/**
 * Answers a valid and allowed operation; undefined for what is executed by the server behind the stages.
 *
 * @param variables coerced
 * @throws what is answered as a refused request: with `errors`, and without `data`
 */
export type Answer<Plan> = (
  operation: CheckedOperation<Plan>,
  variables: Readonly<Record<string, unknown>>,
  exchange: Exchange,
) => Reply | undefined | Promise<Reply | undefined>;

/** The stages of an operation whose parameters were read. What a stage reads was found by one before it. */
export function checkOperations<Plan>(checks: OperationChecks<Plan>) {
  const { operations, schema, introspection, isRouter, answer } = checks;
  const coercion = { maxErrors: 50, hideSuggestions: !introspection };
  return {
    find: (exchange) => {
      checkParams(exchange.params);
      const { query, operationName } = exchange.params;
      const operation = operations.find(query as string, operationName);
      if (operation.type === OperationTypeNode.MUTATION && exchange.method !== 'POST') {
        throw mutationInAddress();
      }
      exchange.operation = operation;
      return undefined;
    },

    /** Before validation, which is what a hostile document makes expensive. */
    enforceLimits: (exchange) => {
      const { excess } = exchange.operation!;
      if (excess === 'broken' || excess.length === 0) return undefined;
      const tooMuch = isRouter(exchange)
        ? excess.filter(({ isAllowedForRouters }) => !isAllowedForRouters)
        : excess;
      if (tooMuch.length === 0) return undefined;
      throw tooComplex(tooMuch.map(({ message }) => message).join(' '));
    },

    /** Where introspection is off, nothing else tells the schema either, unless a router asks for it. */
    concealSdl: (exchange) => {
      if (introspection || !exchange.operation!.routerFields.includes('_service')) return undefined;
      if (isRouter(exchange)) return undefined;
      throw concealed();
    },

    refuseInvalid: ({ operation }) => {
      const { errors, type } = operation!;
      if (errors.length > 0) throw new AggregateError(errors);
      // Validation does not report this: without a root type it knows none of the fields.
      if (!schema.getRootType(type)) throw notOffered(type);
      return undefined;
    },

    coerceVariables: (exchange) => {
      const { operation } = exchange.operation!;
      // From here on, what goes wrong goes wrong with an operation that is executed.
      exchange.operationType = operation.operation;
      const { variableDefinitions = [] } = operation;
      if (variableDefinitions.length === 0) return undefined;
      const given = (exchange.params['variables'] ?? {}) as Record<string, unknown>;
      const { coerced, errors } = getVariableValues(schema, variableDefinitions, given, coercion);
      if (errors) throw new AggregateError(errors);
      exchange.variables = coerced;
      return undefined;
    },

    answer: (exchange) =>
      answer(exchange.operation as CheckedOperation<Plan>, exchange.variables, exchange),
  } satisfies Record<string, Stage>;
}

const PARAMS: ReadonlySet<string> = new Set(['query', 'variables', 'operationName', 'extensions']);

function checkParams(params: Params): void {
  for (const name in params) {
    if (PARAMS.has(name) || params[name] === null || params[name] === undefined) continue;
    throw refused(`Unexpected parameter "${name}" in the request body.`);
  }
  const { query } = params;
  if (query === undefined || query === null) throw refused('Must provide query string.');
  if (typeof query !== 'string') throw refused('The "query" must be a string.');
  for (const name of ['variables', 'extensions']) {
    const value = params[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'object' || Array.isArray(value)) {
      throw refused(`The "${name}" must be an object.`);
    }
  }
}

function refused(message: string) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status: 400 } } });
}

function mutationInAddress() {
  const http = { status: 405, headers: { Allow: 'POST' } };
  const message = 'Can only perform a mutation operation from a POST request.';
  return codedError('BAD_USER_INPUT', message, { extensions: { http } });
}

function notOffered(type: OperationTypeNode) {
  return codedError(
    'BAD_USER_INPUT',
    `The schema offers no ${type}. Send an operation of another type.`,
  );
}

function concealed() {
  return codedError(
    'FORBIDDEN',
    'The SDL of this subgraph is not given out: introspection is off, and this credential is not that of a router. The operator of this gateway has it from "schema print --subgraph".',
    { extensions: { http: { status: 403, spec: true } } },
  );
}
