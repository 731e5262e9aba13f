import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import { getOperationAST, GraphQLError, OperationTypeNode, print } from 'graphql';
import { codedError } from '../errors.ts';
import { isObject, notGraphQL, type Json } from './read-answer.ts';
import type { OutgoingRequest, Sender, UpstreamAnswer } from './request.ts';
import type { SendToService } from './upstream.ts';

/**
 * Makes the `Executor` of graphql-tools, for `wrapSchema` and other gateways. A request that fails has a result with a
 * coded error, like with the HTTP executor of graphql-tools. Its `extensions` are not sent, and its `context` is not
 * read. It throws only the abort reason of the request's signal.
 */
export function graphqlToolsExecutor(send: SendToService) {
  return async (request: ExecutionRequest): Promise<ExecutionResult> => {
    try {
      return readResult(await send(printed(request), senderOf(request)));
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  };
}

/** @throws BAD_USER_INPUT for a subscription, and for a document without the operation */
function printed({ document, variables, operationName }: ExecutionRequest): OutgoingRequest {
  const kind = getOperationAST(document, operationName)?.operation;
  if (kind === undefined || kind === OperationTypeNode.SUBSCRIPTION) {
    throw codedError(
      'BAD_USER_INPUT',
      'Send one query or mutation; if the document has several operations, name one in operationName.',
    );
  }
  return { kind, body: JSON.stringify({ query: print(document), operationName, variables }) };
}

function senderOf({ signal, info }: ExecutionRequest): Sender {
  return {
    signal: signal ?? info?.signal ?? new AbortController().signal,
    priority: 'interactive',
    caller: 'executor',
    cause: undefined,
  };
}

/**
 * Parses an answer. Nothing of the result is shared with other callers.
 *
 * @throws UPSTREAM_BAD_RESPONSE if it is not JSON
 */
export function readResult({ text, status }: UpstreamAnswer): ExecutionResult {
  let answer: Json;
  try {
    answer = JSON.parse(text) as Json;
  } catch {
    throw notGraphQL(status).error;
  }
  const { data, errors, extensions } = answer;
  return {
    ...(data !== undefined && { data: data as Json | null }),
    ...(Array.isArray(errors) && { errors: errors.map(errorOf) }),
    ...(isObject(extensions) && { extensions }),
  };
}

function errorOf(error: unknown): GraphQLError {
  const { message, path, extensions, locations }: Json = isObject(error) ? error : {};
  const graphQLError = new GraphQLError(
    typeof message === 'string' ? message : 'The recruiting service reported an error.',
    {
      ...(Array.isArray(path) && { path: path as (string | number)[] }),
      ...(isObject(extensions) && { extensions }),
    },
  );
  return Array.isArray(locations) ? Object.assign(graphQLError, { locations }) : graphQLError;
}
