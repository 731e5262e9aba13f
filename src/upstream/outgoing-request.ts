import type { ExecutionRequest } from '@graphql-tools/utils';
import { Kind, OperationTypeNode, type DocumentNode } from 'graphql';
import { printDocument } from '../print-document.ts';
import type { Priority } from './turns.ts';

/** One request as it will be sent, and who wants it. */
export interface OutgoingRequest {
  readonly kind: 'query' | 'mutation';
  /** The field of the root that it asks for. */
  readonly field: string;
  readonly body: string;
  readonly priority: Priority;
  /** Whose turn it takes; of several who share it, that of the one who began it. */
  readonly caller: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** Called for each answer that says that the service has too much to do. */
  readonly onPressure: (() => void) | undefined;
  /** For whom it is sent; of several who share it, for the one who began it. */
  readonly cause: unknown;
}

/** What the executor reads of the GraphQL context. */
export interface UpstreamContext {
  /** The caller left: what only that caller waited for is aborted. */
  readonly signal?: AbortSignal;
  /** Interactive unless told. */
  readonly priority?: Priority;
  /** Who waits for it: of several callers it is the turn of one after the other. */
  readonly caller?: string;
  /** Called for each 429 and 5xx, also when the request is then sent again: a drain had better ask for less at a time. */
  readonly onPressure?: () => void;
  /** Names to the watch for whom this is asked. Nothing here looks into it. */
  readonly cause?: unknown;
}

export function outgoingRequest(request: ExecutionRequest): OutgoingRequest {
  const { document, variables, operationName } = request;
  const context = request.context as UpstreamContext | undefined;
  return {
    // Only what is surely a query may be shared, or sent twice.
    kind: request.operationType === OperationTypeNode.QUERY ? 'query' : 'mutation',
    field: fieldOf(document),
    body: JSON.stringify({ query: printDocument(document), variables, operationName }),
    priority: context?.priority ?? 'interactive',
    caller: context?.caller,
    signal: context?.signal,
    onPressure: context?.onPressure,
    cause: context?.cause,
  };
}

function fieldOf({ definitions }: DocumentNode): string {
  for (const definition of definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const [selection] = definition.selectionSet.selections;
    if (selection?.kind === Kind.FIELD) return selection.name.value;
  }
  return '';
}
