import type { GraphQLSchema } from 'graphql';
import { systemClock } from '../../src/clock.ts';
import type { Exchange, Stage } from '../../src/http/exchange/exchange.ts';
import {
  createHandler,
  type ExchangeTelemetry,
  type Handler,
} from '../../src/http/exchange/handler.ts';
import { createExecution } from '../../src/http/execution/execution.ts';
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
    answer: () => undefined,
  });
  const execution = createExecution({ schema, contextOf, mask, plugins: [] });
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
      execution.execute,
    ],
    refuse: execution.refuse,
    mask,
    clock: systemClock,
  });
}

function mask(error: unknown): Error {
  return error as Error;
}
