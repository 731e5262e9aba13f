import type { IncomingMessage } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { execute } from 'graphql';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import { problem } from './answer.ts';
import type { Answer } from './answer.ts';
import type { Stats } from './count-requests.ts';
import { contentType, readBody } from './read-body.ts';
import { createDocumentReader } from './read-document.ts';
import type { ReadDocument } from './read-document.ts';
import type { Route } from './route-requests.ts';
import type { TokenOffice } from './token-office.ts';

export interface GraphqlParts {
  schema: GraphQLSchema;
  /** Milliseconds. */
  latency: number;
  tokens: TokenOffice;
  stats: Stats;
}

/** POST /graphql */
export function graphqlEndpoint(parts: GraphqlParts): Route['answer'] {
  const { latency, tokens, stats, schema } = parts;
  const readDocument = createDocumentReader(schema);
  return async (request, gone) => {
    stats.lastHeaders = request.headers;
    stats.inFlight += 1;
    stats.maxInFlight = Math.max(stats.maxInFlight, stats.inFlight);
    try {
      const refusal = tokens.refuse(request);
      const operation = refusal ?? (await readOperation(request));
      if (latency > 0) await wait(latency, undefined, { signal: gone });
      if ('status' in operation) return operation;
      stats.graphql += 1;
      return { status: 200, body: await answer(operation, schema, readDocument) };
    } finally {
      stats.inFlight -= 1;
    }
  };
}

const maxBytes = 1024 * 1024;

interface Operation {
  query: string;
  variables: Record<string, unknown> | null;
  operationName: string | null;
}

async function readOperation(request: IncomingMessage): Promise<Operation | Answer> {
  const text = await readBody(request, maxBytes);
  if (text === undefined) return problem(413, `The body is larger than ${maxBytes} bytes.`);
  // The interface asks for this header without saying what happens otherwise.
  if (contentType(request) !== 'application/json') {
    return problem(415, 'Content-Type must be application/json.');
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return problem(400, 'The body is not JSON.');
  }
  if (!isObject(body)) return problem(400, 'The body is not a JSON object.');

  const { query, variables = null, operationName = null } = body;
  if (typeof query !== 'string') return problem(400, 'The field query must be a string.');
  if (variables !== null && !isObject(variables)) {
    return problem(400, 'The field variables must be an object.');
  }
  if (operationName !== null && typeof operationName !== 'string') {
    return problem(400, 'The field operationName must be a string.');
  }
  return { query, variables, operationName };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An invalid query is answered like any other, its errors in the body, as servers of plain JSON do. */
async function answer(
  { query, variables, operationName }: Operation,
  schema: GraphQLSchema,
  readDocument: ReadDocument,
): Promise<ExecutionResult> {
  const document = readDocument(query);
  if (!('kind' in document)) return { errors: document };
  return execute({ schema, document, variableValues: variables, operationName });
}
