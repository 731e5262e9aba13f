import { buildSchema, type GraphQLError } from 'graphql';
import { systemClock } from '../../../src/clock.ts';
import type { ErrorPolicy } from '../../../src/http/error-policy.ts';
import type { ExchangeTelemetry, Stages } from '../../../src/http/exchange.ts';
import { plugin, createHandler, type Handler } from '../../../src/http/handler.ts';

const noTelemetry: ExchangeTelemetry = {
  begun: () => ({ requestId: '', cause: undefined }),
  ended: () => {},
};

/** Runs only these stages. What they throw is not masked. */
export function handlerOf(
  stages: Stages,
  {
    errors = THROWING,
    telemetry = noTelemetry,
  }: { errors?: ErrorPolicy; telemetry?: ExchangeTelemetry } = {},
): Handler {
  const schema = buildSchema('type Query { any: Int }');
  return createHandler({
    schema,
    plugins: stages.map((stage) => plugin(stage)),
    errors,
    telemetry,
    clock: systemClock,
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
