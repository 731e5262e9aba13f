import type { IncomingMessage } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { execute, GraphQLError, parse, validate } from 'graphql';
import type { DocumentNode, ExecutionResult, GraphQLSchema } from 'graphql';
import { problem } from './answer.ts';
import type { Answer } from './answer.ts';
import { contentType, readBody } from './route-requests.ts';
import type { Route, Stats } from './route-requests.ts';
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
  const documentOf = createDocumentReader(schema);
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
      return { status: 200, body: await answer(operation, schema, documentOf) };
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
  // The interface requires this header without saying what happens otherwise.
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

/** An invalid query gets status 200 and its errors in the body, as GraphQL servers do for plain JSON. */
async function answer(
  { query, variables, operationName }: Operation,
  schema: GraphQLSchema,
  documentOf: ReadDocument,
): Promise<ExecutionResult> {
  const document = documentOf(query);
  if (!('kind' in document)) return { errors: document };
  return execute({ schema, document, variableValues: variables, operationName });
}

/** Returns the document of a query, or its errors. */
type ReadDocument = (source: string) => DocumentNode | readonly GraphQLError[];

const REMEMBERED = 100;

/**
 * Remembers the latest documents, as servers do: all pages of a walk have the same document, and validating it costs
 * more than answering it.
 */
function createDocumentReader(schema: GraphQLSchema): ReadDocument {
  const known = new Map<string, ReturnType<ReadDocument>>();
  return (source) => {
    const read = known.get(source) ?? readDocument(source, schema);
    known.delete(source);
    known.set(source, read);
    if (known.size > REMEMBERED) known.delete(known.keys().next().value!);
    return read;
  };
}

function readDocument(source: string, schema: GraphQLSchema): ReturnType<ReadDocument> {
  try {
    const document = parse(source);
    const errors = validate(schema, document);
    return errors.length > 0 ? errors : document;
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    throw error;
  }
}
