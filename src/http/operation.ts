import { OperationTypeNode, type DocumentNode, type GraphQLSchema } from 'graphql';
import type { CallVariables } from '../engine/call.ts';
import { codedError, forbidden } from '../errors.ts';
import { noRoom, type ByteLimit } from '../memory/byte-limit.ts';
import { tooComplex } from '../operations/limits.ts';
import type { CheckedOperation, Operations } from '../operations/operations.ts';
import { coerceVariables } from '../operations/variables.ts';
import { enforceScopes } from '../schema/field-scopes.ts';
import type { Exchange, Stage } from './exchange.ts';

/** An operation that somebody asks for. */
export interface Asked<Plan = unknown> {
  readonly exchange: Exchange;
  readonly operation: CheckedOperation<Plan>;
}

/** Refuses an operation by throwing. */
export type Check = (asked: Asked) => void;

export type Checks = readonly (Check | undefined)[];

interface OperationParts<Plan> {
  readonly operations: Operations<Plan>;
  /** The offered schema: what callers see, with what a company adds. */
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  /** Counts what is kept of requests until they are answered. */
  readonly bodies: ByteLimit;
  readonly isRouter: (exchange: Exchange) => boolean;
}

/** The steps of an operation, in their order. Each gets what those before it have found. */
export function createOperationStages<Plan>(parts: OperationParts<Plan>) {
  const { operations, schema, introspection, bodies, isRouter } = parts;
  return {
    /** Refuses other methods than POST and GET. */
    knownMethod: (({ method }) => {
      if (method !== 'POST' && method !== 'GET') throw otherMethod('GET, POST', OTHER_METHOD);
      return undefined;
    }) satisfies Stage,

    /** Parses the operation, or finds it among the operations that were compiled before. */
    find: (exchange: Exchange, query: unknown, operationName: unknown): CheckedOperation<Plan> => {
      const operation =
        typeof query === 'string'
          ? operations.find(query, operationName)
          : operations.findDocument(query as DocumentNode, operationName);
      const { notes } = exchange;
      if (notes.trustedName !== '') notes.trustedName = operation.name ?? notes.trustedName;
      if (operation.type === OperationTypeNode.MUTATION && exchange.method !== 'POST') {
        throw otherMethod('POST', 'A GET request cannot execute a mutation. Send it with POST.');
      }
      return operation;
    },

    /** Refuses an operation above MAX_DEPTH, MAX_ALIASES or MAX_TOKENS. */
    enforceLimits: (({ exchange, operation }) => {
      const excess = operation.excess(isRouter(exchange));
      if (excess.length > 0) throw tooComplex(excess.join(' '));
    }) satisfies Check,

    /** Refuses `_service { sdl }` if introspection is off, unless the caller is a router. */
    concealSdl: (({ exchange, operation }) => {
      if (introspection || !operation.routerFields.includes('_service')) return;
      if (!isRouter(exchange)) throw forbidden(CONCEALED);
    }) satisfies Check,

    /** Refuses an operation that is not valid against the schema. */
    refuseInvalid: (({ operation }) => {
      const errors = operation.errors();
      if (errors.length > 0) throw new AggregateError(errors);
      // Validation does not report a missing root type: without one it knows none of the fields.
      if (!schema.getRootType(operation.type)) throw withoutRootType(operation.type);
    }) satisfies Check,

    /** Refuses an operation with a field whose scope the caller lacks. */
    enforceFieldScopes: (({ exchange, operation }) => {
      enforceScopes(operation.scopedUses, exchange.caller);
    }) satisfies Check,

    coerceVariables: ({ exchange, operation }: Asked<Plan>, sent: unknown): CallVariables => {
      // From here on, telemetry counts the request as an executed operation.
      exchange.notes.operationType = operation.type;
      const sentOnes = (sent ?? {}) as Record<string, unknown>;
      const variables = coerceVariables(operation.operation, sentOnes, {
        schema,
        hideSuggestions: !introspection,
      });
      // All that is kept of the body while the operation waits for the service.
      const { length } = JSON.stringify(variables.sent);
      exchange.onEnd(() => bodies.remove(length));
      if (!bodies.add(length, length)) throw noRoom();
      return variables;
    },
  };
}

function otherMethod(allowed: string, message: string) {
  const http = { status: 405, headers: { Allow: allowed }, isForAll: true };
  return codedError('BAD_USER_INPUT', message, { extensions: { http } });
}

const OTHER_METHOD =
  'This method is not supported. Send the operation with POST, or a query with GET.';

function withoutRootType(type: OperationTypeNode) {
  return codedError(
    'BAD_USER_INPUT',
    `The schema has no type for a ${type}. Send an operation of another type.`,
  );
}

const CONCEALED =
  "The SDL of this subgraph is not served: introspection is off, and this credential is not a router's. " +
  'The operator of this gateway can print it with "schema print --subgraph".';
