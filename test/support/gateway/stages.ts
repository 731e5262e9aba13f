import {
  buildSchema,
  execute,
  visit,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
} from 'graphql';
import pino from 'pino';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { plugin, createHandler, type Handler } from '../../../src/http/handler.ts';
import { accepted } from '../../../src/http/accept.ts';
import { codedError } from '../../../src/errors.ts';
import { createErrorPolicy, type ErrorPolicy } from '../../../src/http/error-policy.ts';
import type {
  Exchange,
  ExchangeTelemetry,
  Reply,
  Stage,
  Stages,
} from '../../../src/http/exchange.ts';
import { createOperationStages } from '../../../src/http/operation.ts';
import { RequestMemory } from '../../../src/memory/byte-limit.ts';
import { createOperations } from '../../../src/operations/operations.ts';

export const noTelemetry: ExchangeTelemetry = { run: (_exchange, work) => work(), ended: () => {} };

/** Runs only these stages. What they throw is not masked. */
export function handlerOf(
  stages: Stages,
  {
    errors = THROWING,
    telemetry = noTelemetry,
    clock = systemClock,
  }: {
    errors?: Pick<ErrorPolicy, 'refuse' | 'fail' | 'mask'>;
    telemetry?: ExchangeTelemetry;
    clock?: Clock;
  } = {},
): Handler {
  const schema = buildSchema('type Query { any: Int }');
  return createHandler({
    schema,
    plugins: stages.map((stage) => plugin(stage)),
    errors,
    telemetry,
    clock,
  });
}

const THROWING: Pick<ErrorPolicy, 'refuse' | 'fail' | 'mask'> = {
  refuse: (_, error) => Promise.reject(error),
  fail: (_, error) => {
    throw error;
  },
  mask: (error) => error as GraphQLError,
};

/** Executes operations on a schema, after the given stages and without any other check. */
export function handlerFor(
  schema: GraphQLSchema,
  {
    first = [],
    checked = [],
    contextOf = () => ({}),
  }: {
    /** Run before anything is read. */
    first?: Stages;
    /** Run after the operation is parsed. */
    checked?: readonly Stage[];
    contextOf?: (exchange: Exchange) => object;
  },
): Handler {
  const limits = { maxTokens: 1e6, maxDepth: 100, maxAliases: 100 };
  const memory = new RequestMemory(1e8);
  const operation = createOperationStages({
    operations: createOperations({ schema, introspection: true, ...limits }),
    schema,
    introspection: true,
    maxBodyBytes: 1e6,
    memory,
    trusted: undefined,
    trustedDocumentsOnly: false,
    isRouter: () => false,
    clock: systemClock,
  });
  const answer = async (exchange: Exchange): Promise<Reply | undefined> => {
    const { document, name } = exchange.operation!;
    const { json: type } = accepted(exchange.header('accept'));
    if (!type)
      throw codedError('BAD_USER_INPUT', 'Not acceptable.', {
        extensions: { http: { status: 406 } },
      });
    const contextValue = contextOf(exchange);
    const operationName = name ?? null;
    const result = await execute({
      schema,
      document: withoutStream(document),
      operationName,
      variableValues: exchange.variables.values,
      contextValue,
    });
    return { status: 200, headers: { 'content-type': type }, body: JSON.stringify(result) };
  };
  const errors = createErrorPolicy({ clock: systemClock, memory, log: pino({ level: 'silent' }) });
  const stages = [
    ...first,
    operation.readParams,
    operation.checkParams,
    operation.find,
    ...checked,
    operation.refuseInvalid,
    operation.coerceVariables,
    answer,
  ];
  return handlerOf(stages, { errors });
}

function withoutStream(document: DocumentNode): DocumentNode {
  return visit(document, {
    Directive: ({ name }) => (name.value === 'stream' ? null : undefined),
  });
}
