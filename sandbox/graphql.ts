import { json } from 'node:stream/consumers';
import { graphql, type GraphQLSchema } from 'graphql';
import { problem, type Route } from './http.ts';
import type { TokenOffice } from './tokens.ts';

interface Operation {
  readonly query?: unknown;
  readonly variables?: Record<string, unknown> | null;
  readonly operationName?: string | null;
}

/** POST /graphql. An invalid query gets status 200 and its errors in the body, as GraphQL servers do for plain JSON. */
export function graphqlRoute(schema: GraphQLSchema, tokens: TokenOffice): Route {
  return async (request) => {
    const refusal = tokens.refuse(request);
    if (refusal) return refusal;
    const body = (await json(request).catch(() => null)) as Operation | null;
    const { query: source, variables, operationName } = body ?? {};
    if (typeof source !== 'string') {
      return problem(400, 'The body must be a JSON object whose field query is a string.');
    }
    const operation = { schema, source, variableValues: variables, operationName };
    return { status: 200, body: await graphql(operation) };
  };
}
