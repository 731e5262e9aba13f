import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { execute, GraphQLError, parse, validate } from 'graphql';
import type { DocumentNode, GraphQLSchema } from 'graphql';
import { LRUCache } from 'lru-cache';
import { contentType, problem, type Answer, type Route } from './http.ts';
import type { TokenOffice } from './tokens.ts';

/**
 * POST /graphql
 *
 * @param latency milliseconds before each answer
 */
export function graphqlRoute(schema: GraphQLSchema, tokens: TokenOffice, latency: number): Route {
  const documentOf = createDocumentReader(schema);
  return {
    method: 'POST',
    answer: async (request, gone) => {
      const operation = tokens.refuse(request) ?? (await readOperation(request));
      if (latency > 0) await wait(latency, undefined, { signal: gone });
      if ('status' in operation) return operation;
      const document = documentOf(operation.query);
      // An invalid query gets status 200 and its errors in the body, as GraphQL servers do for plain JSON.
      if (!('kind' in document)) return { status: 200, body: { errors: document } };
      const { variables: variableValues, operationName } = operation;
      return {
        status: 200,
        body: await execute({ schema, document, variableValues, operationName }),
      };
    },
  };
}

interface Operation {
  readonly query: string;
  readonly variables?: Record<string, unknown> | null;
  readonly operationName?: string | null;
}

async function readOperation(request: IncomingMessage): Promise<Operation | Answer> {
  const body = await text(request);
  // The interface requires this header without saying what happens otherwise.
  if (contentType(request) !== 'application/json') {
    return problem(415, 'Content-Type must be application/json.');
  }
  try {
    const operation = JSON.parse(body) as Operation | null;
    if (typeof operation?.query === 'string') return operation;
  } catch {
    // Reported below.
  }
  return problem(400, 'The body must be a JSON object whose field query is a string.');
}

/** Returns the document of a query, or its errors. */
type ReadDocument = (source: string) => DocumentNode | readonly GraphQLError[];

/**
 * Remembers the latest documents, as servers do: all pages of a walk have the same document, and validating it costs
 * more than answering it.
 */
function createDocumentReader(schema: GraphQLSchema): ReadDocument {
  const known = new LRUCache<string, ReturnType<ReadDocument>>({
    max: 100,
    memoMethod: (source) => readDocument(source, schema),
  });
  return (source) => known.memo(source);
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
