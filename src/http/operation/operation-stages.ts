import {
  getVariableValues,
  OperationTypeNode,
  type GraphQLError,
  type GraphQLSchema,
} from 'graphql';
import { badRequest, codedError, forbidden } from '../../errors.ts';
import { tooComplex } from '../../operations/limits.ts';
import type { Operations } from '../../operations/operations.ts';
import type { TrustedDocument } from '../../operations/trusted-documents.ts';
import type { CallVariables } from '../../plans/call.ts';
import type { RequestMemory } from '../../memory/byte-limit.ts';
import type { Exchange, Params, Stage } from '../exchange.ts';
import { noMemory } from '../hold-requests.ts';
import { DeclaredVariables } from './declared-variables.ts';
import { readParams } from './read-params.ts';
import { trustedDocuments } from './trusted.ts';

export interface OperationParts<Plan> {
  readonly operations: Operations<Plan>;
  /** The served schema. */
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly maxBodyBytes: number;
  readonly memory: RequestMemory;
  /** By their ids; undefined: there are no trusted documents. */
  readonly trusted: ReadonlyMap<string, TrustedDocument> | undefined;
  /** Whether other operations are refused, except those of routers. */
  readonly trustedDocumentsOnly: boolean;
  readonly isRouter: (exchange: Exchange) => boolean;
}

/** The stages of an operation, in their order. Each reads what an earlier one has put into the exchange. */
export interface OperationStages {
  /** Reads the parameters of the request. */
  readonly readParams: Stage;
  /** Replaces the id of a trusted document by its text. */
  readonly trustedDocuments: Stage;
  /** Refuses parameters that are not those of a GraphQL request. */
  readonly checkParams: Stage;
  /** Parses the operation, or finds it among those that were compiled before. */
  readonly find: Stage;
  /** Refuses an operation above MAX_DEPTH, MAX_ALIASES or MAX_TOKENS. */
  readonly enforceLimits: Stage;
  /** Refuses `_service { sdl }` if introspection is off, unless the caller is a router. */
  readonly concealSdl: Stage;
  /** Refuses an operation that is not valid against the schema. */
  readonly refuseInvalid: Stage;
  readonly coerceVariables: Stage;
}

export function createOperationStages<Plan>(parts: OperationParts<Plan>): OperationStages {
  const { operations, schema, introspection, maxBodyBytes, memory, isRouter } = parts;
  const coercion = { maxErrors: 50, hideSuggestions: !introspection };
  return {
    readParams: readParams(maxBodyBytes, memory),

    trustedDocuments: trustedDocuments(parts),

    checkParams: ({ params }) => {
      checkParams(params);
      return undefined;
    },

    find: (exchange) => {
      const { query, operationName } = exchange.params;
      const operation = operations.find(query as string, operationName);
      if (operation.type === OperationTypeNode.MUTATION && exchange.method !== 'POST') {
        throw mutationInAddress();
      }
      exchange.operation = operation;
      const mayGoOn = operation.use(memory);
      exchange.onEnd(() => operation.release());
      return mayGoOn ? undefined : noMemory(exchange, memory);
    },

    enforceLimits: (exchange) => {
      const { excess } = exchange.operation!;
      if (excess === 'broken' || excess.length === 0) return undefined;
      const tooMuch = isRouter(exchange)
        ? excess.filter(({ isAllowedForRouters }) => !isAllowedForRouters)
        : excess;
      if (tooMuch.length === 0) return undefined;
      throw tooComplex(tooMuch.map(({ message }) => message).join(' '));
    },

    concealSdl: (exchange) => {
      if (introspection || !exchange.operation!.routerFields.includes('_service')) return undefined;
      if (isRouter(exchange)) return undefined;
      throw forbidden(CONCEALED);
    },

    refuseInvalid: ({ operation }) => {
      const errors = operation!.errors();
      const { type } = operation!;
      if (errors.length > 0) throw new AggregateError(errors);
      // Validation does not report a missing root type: without one it knows none of the fields.
      if (!schema.getRootType(type)) throw withoutRootType(type);
      return undefined;
    },

    coerceVariables: (exchange) => {
      const { operation } = exchange.operation!;
      // From here on, telemetry counts the request as an executed operation.
      exchange.operationType = operation.operation;
      const { params, writtenVariables } = exchange;
      exchange.dropParams();
      const { variableDefinitions = [] } = operation;
      if (variableDefinitions.length === 0) return undefined;
      const given = (params['variables'] ?? {}) as Record<string, unknown>;
      const result: Coercion = getVariableValues(schema, variableDefinitions, given, coercion);
      if (result.errors) throw new AggregateError(result.errors);
      const values = (result.variableValues ?? result).coerced!;
      const written = writtenVariables;
      const variables = new DeclaredVariables(values, variableDefinitions, { given, written });
      if (!exchange.hold(variables.bytes, memory)) return noMemory(exchange, memory);
      exchange.variables = variables;
      return undefined;
    },
  };
}

interface Coercion {
  readonly errors?: readonly GraphQLError[];
  readonly coerced?: CallVariables['values'];
  /** In graphql 17 they are here. */
  readonly variableValues?: { readonly coerced: CallVariables['values'] };
}

const PARAMS: ReadonlySet<string> = new Set(['query', 'variables', 'operationName', 'extensions']);

function checkParams(params: Params): void {
  for (const name in params) {
    if (PARAMS.has(name) || params[name] === null || params[name] === undefined) continue;
    throw badRequest(`The request has an unknown parameter "${name}". Remove it.`);
  }
  const { query } = params;
  if (query === undefined || query === null) {
    throw badRequest('The request has no "query". Send the text of an operation.');
  }
  if (typeof query !== 'string') {
    throw badRequest('The "query" of the request is not a string. Send the text of an operation.');
  }
  for (const name of ['variables', 'extensions']) {
    const value = params[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'object' || Array.isArray(value)) {
      throw badRequest(
        `The "${name}" of the request must be an object. Correct them, or omit them.`,
      );
    }
  }
}

function mutationInAddress() {
  const http = { status: 405, headers: { Allow: 'POST' } };
  const message = 'A GET request cannot execute a mutation. Send it with POST.';
  return codedError('BAD_USER_INPUT', message, { extensions: { http } });
}

function withoutRootType(type: OperationTypeNode) {
  return codedError(
    'BAD_USER_INPUT',
    `The schema has no type for a ${type}. Send an operation of another type.`,
  );
}

const CONCEALED =
  "The SDL of this subgraph is not served: introspection is off, and this credential is not a router's. " +
  'The operator of this gateway can print it with "schema print --subgraph".';
