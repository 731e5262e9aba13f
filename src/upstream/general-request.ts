import type { ExecutionRequest } from '@graphql-tools/utils';
import { getOperationAST, OperationTypeNode, print } from 'graphql';
import { codedError } from '../errors.ts';
import { inOneStep } from '../pausable.ts';
import { firstField, ServiceRequest } from '../service-request.ts';

/**
 * Prints a request of which there is only the document: one of `wrapSchema`, or of another gateway. Its `extensions` are
 * not sent, and its `context` is not read: what it holds is not for the service.
 *
 * @throws BAD_USER_INPUT for a subscription, and for a document without the operation
 */
export function requestFor({
  document,
  variables,
  operationName,
  signal,
  info,
}: ExecutionRequest): ServiceRequest<undefined> {
  const kind = getOperationAST(document, operationName)?.operation;
  if (kind === undefined || kind === OperationTypeNode.SUBSCRIPTION) {
    throw codedError(
      'BAD_USER_INPUT',
      kind === undefined
        ? 'The document has no such operation, or several: name one of them in operationName.'
        : 'The recruiting service has no subscriptions. Send a query or a mutation.',
    );
  }
  return new ServiceRequest(
    {
      kind,
      field: firstField(document, operationName),
      body: JSON.stringify({ query: print(document), operationName, variables }),
      key: UNREAD,
      read: () => inOneStep(undefined),
    },
    {
      signal: signal ?? info?.signal ?? new AbortController().signal,
      priority: 'interactive',
      caller: 'executor',
      cause: undefined,
    },
  );
}

/** Not the key of a request with a reading of its own, whose body may be the same. */
const UNREAD = 'unread';
