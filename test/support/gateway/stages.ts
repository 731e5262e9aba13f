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
import { accepted } from '../../../src/http/formats.ts';
import { codedError } from '../../../src/errors.ts';
import { createErrorPolicy, type ErrorPolicy } from '../../../src/http/error-policy.ts';
import type { Exchange, ExchangeTelemetry, Stages } from '../../../src/http/exchange.ts';
import { createOperationStages, type Checks } from '../../../src/http/operation.ts';
import { checkParams, createReadParams } from '../../../src/http/params.ts';
import type { Reply } from '../../../src/http/reply.ts';
import { ByteLimit } from '../../../src/memory/byte-limit.ts';
import { createOperations } from '../../../src/operations/operations.ts';

export const noTelemetry: ExchangeTelemetry = {
  begun: () => ({ requestId: '', cause: undefined }),
  ended: () => {},
};

/** Runs only these stages. What they throw is not masked. */
export function handlerOf(
  stages: Stages,
  {
    errors = THROWING,
    telemetry = noTelemetry,
    clock = systemClock,
  }: {
    errors?: ErrorPolicy;
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

const THROWING: ErrorPolicy = {
  refuse: (_, error) => {
    throw error;
  },
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
    checked?: Checks;
    contextOf?: (exchange: Exchange) => object;
  },
): Handler {
  const limits = { maxTokens: 1e6, maxDepth: 100, maxAliases: 100 };
  const bodies = new ByteLimit(1e8);
  const operation = createOperationStages({
    operations: createOperations({ schema, introspection: true, ...limits }),
    schema,
    introspection: true,
    bodies,
    isRouter: () => false,
  });
  const clock = systemClock;
  const read = createReadParams({ maxBodyBytes: 1e6, maxRequests: 1_000, bodies, clock });
  const answer = async (exchange: Exchange): Promise<Reply> => {
    const params = checkParams(exchange, await read(exchange));
    const found = operation.find(exchange, params['query'], params['operationName']);
    const asked = { exchange, operation: found };
    for (const check of [...checked, operation.refuseInvalid]) check?.(asked);
    const { values } = operation.coerceVariables(asked, params['variables']);
    const { json: type } = accepted(exchange.header('accept'));
    if (!type)
      throw codedError('BAD_USER_INPUT', 'Not acceptable.', {
        extensions: { http: { status: 406 } },
      });
    const result = await execute({
      schema,
      document: withoutStream(found.document),
      operationName: found.name ?? null,
      variableValues: values,
      contextValue: contextOf(exchange),
    });
    return { status: 200, headers: { 'content-type': type }, body: JSON.stringify(result) };
  };
  const errors = createErrorPolicy({ clock: systemClock, log: pino({ level: 'silent' }) });
  return handlerOf([...first, answer], { errors });
}

function withoutStream(document: DocumentNode): DocumentNode {
  return visit(document, {
    Directive: ({ name }) => (name.value === 'stream' ? null : undefined),
  });
}
