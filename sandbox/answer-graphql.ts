import type { IncomingMessage } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { execute, GraphQLError, parse, validate } from 'graphql';
import type { DocumentNode, GraphQLSchema } from 'graphql';
import type { Habits } from './habits.ts';
import {
  contentType,
  problem,
  readBody,
  type Answer,
  type Route,
  type Stats,
} from './route-requests.ts';
import type { TokenOffice } from './token-office.ts';
import { badFaithOf, operationCost } from './validation.ts';

interface GraphqlParts {
  schema: GraphQLSchema;
  /** Milliseconds. */
  latency: number;
  tokens: TokenOffice;
  stats: Stats;
  habits: Habits;
}

/** POST /graphql */
export function graphqlEndpoint(parts: GraphqlParts): Route['answer'] {
  const { latency, tokens, stats, schema, habits } = parts;
  const documentOf = createDocumentReader(schema, habits);
  return async (request, gone) => {
    stats.lastHeaders = request.headers;
    stats.inFlight += 1;
    stats.maxInFlight = Math.max(stats.maxInFlight, stats.inFlight);
    try {
      const refusal = tokens.refuse(request);
      const operation = refusal ?? (await readOperation(request));
      if (latency > 0) await wait(latency, undefined, { signal: gone });
      if ('status' in operation) return operation;
      const document = documentOf(operation.query);
      // An invalid query gets status 200 and its errors in the body, as GraphQL servers do for plain JSON.
      if (!('kind' in document)) return { status: 200, body: { errors: document } };
      const cost = operationCost({ document, ...operation }, schema);
      const extension = habits.costExtension && { extensions: { cost: { requested: cost } } };
      if (cost > (habits.maxCost ?? Infinity)) return tooCostly(cost, habits, extension);
      stats.graphql += 1;
      const result = await execute({
        schema,
        document,
        variableValues: operation.variables,
        operationName: operation.operationName,
      });
      return { status: 200, body: { ...result, ...extension } };
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

function tooCostly(
  cost: number,
  { maxCost, tooCostly: how }: Habits,
  extension: object | undefined | false,
): Answer {
  switch (how) {
    case 413:
      return problem(413, 'The request is too large.');
    case 502:
    case 504:
      return { status: how, text: `<h1>${how}</h1>\n`, headers: { 'content-type': 'text/html' } };
    default:
      return {
        status: 200,
        body: {
          errors: [
            {
              message: `maximum query complexity exceeded ${cost} > ${maxCost}`,
              extensions: { classification: 'ExecutionAborted' },
            },
          ],
          ...extension,
        },
      };
  }
}

/** Returns the document of a query, or its errors. */
type ReadDocument = (source: string) => DocumentNode | readonly GraphQLError[];

const REMEMBERED = 100;

/**
 * Remembers the latest documents, as servers do: all pages of a walk have the same document, and validating it costs
 * more than answering it.
 */
function createDocumentReader(schema: GraphQLSchema, habits: Habits): ReadDocument {
  const known = new Map<string, ReturnType<ReadDocument>>();
  return (source) => {
    const read = known.get(source) ?? readDocument(source, schema, habits);
    known.delete(source);
    known.set(source, read);
    if (known.size > REMEMBERED) known.delete(known.keys().next().value!);
    return read;
  };
}

function readDocument(
  source: string,
  schema: GraphQLSchema,
  { introspection = 'open' }: Habits,
): ReturnType<ReadDocument> {
  try {
    const document = parse(source);
    const errors = validate(schema, document);
    if (errors.length > 0) return errors;
    const badFaith = introspection === 'strict' ? badFaithOf(document) : undefined;
    return badFaith ? [badFaith] : document;
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    throw error;
  }
}
