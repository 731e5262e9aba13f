import { json } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { graphql, type GraphQLSchema } from 'graphql';
import { problem, type Route } from './http.ts';
import type { TokenOffice } from './tokens.ts';

interface Operation {
  readonly query?: unknown;
  readonly variables?: Record<string, unknown> | null;
  readonly operationName?: string | null;
}

/**
 * POST /graphql. An invalid query gets status 200 and its errors in the body, as GraphQL servers do for plain JSON.
 *
 * @param latency milliseconds before each answer
 */
export function graphqlRoute(schema: GraphQLSchema, tokens: TokenOffice, latency: number): Route {
  return async (request) => {
    const refusal = tokens.refuse(request);
    const body = refusal ?? (await json(request).catch(() => null));
    if (latency > 0) await wait(latency);
    if (refusal) return refusal;
    const { query: source, variables, operationName } = (body ?? {}) as Operation;
    if (typeof source !== 'string') {
      return problem(400, 'The body must be a JSON object whose field query is a string.');
    }
    const operation = { schema, source, variableValues: variables, operationName };
    return { status: 200, body: await graphql(operation) };
  };
}
