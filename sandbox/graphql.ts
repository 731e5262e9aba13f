import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { execute, parse, validate } from 'graphql';
import type { DocumentNode, ExecutionResult, GraphQLError, GraphQLSchema } from 'graphql';
import { problem, type Answer, type Route } from './http.ts';
import type { TokenOffice } from './tokens.ts';

/**
 * POST /graphql
 *
 * @param latency milliseconds before each answer
 */
export function graphqlRoute(schema: GraphQLSchema, tokens: TokenOffice, latency: number): Route {
  return async (request) => {
    const operation = tokens.refuse(request) ?? (await readOperation(request));
    if (latency > 0) await wait(latency);
    if ('status' in operation) return operation;
    return { status: 200, body: await resultOf(operation, schema) };
  };
}

interface Operation {
  readonly query: string;
  readonly variables?: Record<string, unknown> | null;
  readonly operationName?: string | null;
}

async function readOperation(request: IncomingMessage): Promise<Operation | Answer> {
  try {
    const operation = (await json(request)) as Operation | null;
    if (typeof operation?.query === 'string') return operation;
  } catch {
    // Reported below.
  }
  return problem(400, 'The body must be a JSON object whose field query is a string.');
}

/** An invalid query gets status 200 and its errors in the body, as GraphQL servers do for plain JSON. */
async function resultOf(
  { query, variables: variableValues, operationName }: Operation,
  schema: GraphQLSchema,
): Promise<ExecutionResult> {
  let document: DocumentNode;
  try {
    document = parse(query);
  } catch (error) {
    return { errors: [error as GraphQLError] };
  }
  const errors = validate(schema, document);
  if (errors.length > 0) return { errors };
  return execute({ schema, document, variableValues, operationName });
}
