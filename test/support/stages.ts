import { execute, type GraphQLSchema } from 'graphql';
import { systemClock } from '../../src/clock.ts';
import type { Exchange, Stage } from '../../src/http/exchange/exchange.ts';
import {
  createHandler,
  type ExchangeTelemetry,
  type Handler,
} from '../../src/http/exchange/handler.ts';
import { jsonTypeFor } from '../../src/http/execution/accept.ts';
import { createRefusals } from '../../src/http/execution/refusals.ts';
import { checkOperations } from '../../src/http/operation/check-operation.ts';
import { readParams } from '../../src/http/operation/read-params.ts';
import { createOperations } from '../../src/operations/operations.ts';

export const noTelemetry: ExchangeTelemetry = { run: (_exchange, work) => work(), ended: () => {} };

/** Executes operations on a schema, behind the given stages and without any other check. */
export function handlerFor(
  schema: GraphQLSchema,
  {
    first = [],
    checked = [],
    contextOf = () => ({}),
  }: {
    /** Before anything is read. */
    first?: readonly Stage[];
    /** Behind the parse. */
    checked?: readonly Stage[];
    contextOf?: (exchange: Exchange) => object;
  },
): Handler {
  const limits = { maxTokens: 1e6, maxDepth: 100, maxAliases: 100 };
  const operation = checkOperations({
    operations: createOperations({ schema, introspection: true, ...limits }),
    schema,
    introspection: true,
    isRouter: () => false,
    answer: async ({ document, name }, variableValues, exchange) => {
      const type = jsonTypeFor(exchange.header('accept'));
      if (!type) return undefined;
      const contextValue = contextOf(exchange);
      const operationName = name ?? null;
      const result = await execute({
        schema,
        document,
        operationName,
        variableValues,
        contextValue,
      });
      return { status: 200, headers: { 'content-type': type }, body: JSON.stringify(result) };
    },
  });
  const refusals = createRefusals({ schema, mask });
  return createHandler({
    telemetry: noTelemetry,
    stages: [
      ...first,
      readParams(1e6),
      operation.find,
      ...checked,
      operation.refuseInvalid,
      operation.coerceVariables,
      operation.answer,
      refusals.notAcceptable,
    ],
    refuse: refusals.refuse,
    mask,
    clock: systemClock,
  });
}

function mask(error: unknown): Error {
  return error as Error;
}
