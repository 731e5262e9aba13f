import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import {
  getOperationAST,
  Kind,
  parse,
  type DocumentNode,
  type FragmentDefinitionNode,
  type OperationTypeNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Cause } from './cause.ts';
import type { Json } from './json.ts';
import type { Pausable } from './pausable.ts';
import type { ServiceResult } from './service-result.ts';

/** A request to the service: what is sent, and how its answer is read. */
export interface OutgoingRequest<T = unknown> extends AnswerReader<T> {
  /** Only queries are shared and sent again. */
  readonly kind: 'query' | 'mutation';
  /** The root field that it selects, the first of several. */
  readonly field: string;
  /** JSON. */
  readonly body: string;
  /** Distinguishes requests with the same body whose answers are read in different ways. */
  readonly key?: string;
  /**
   * For a trial, which shows whether the service answers this request at all: it is sent once, even if the circuit
   * breaker is open, and ends after this time, ms.
   */
  readonly trialMs?: number | undefined;
}

export interface AnswerReader<T> {
  /** Returns undefined for an answer that only `read` can take. Default: `read` takes all. */
  readonly scan?: ((bytes: Buffer) => Pausable<T | undefined>) | undefined;
  /** @param answer an object with `data`, or a list of `errors`, or both */
  readonly read: (answer: Json, status: number) => Pausable<T>;
}

/** For whom a request is sent. */
export interface Sender {
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  readonly priority: Priority;
  /**
   * Callers take turns; a shared request takes the turn of the caller who sent it first. Required, since requests
   * that leave it out would all wait as one caller.
   */
  readonly caller: string;
  /** Called for each 429 and 5xx, also when the request is sent again: a drain should then send fewer at a time. */
  readonly onPressure?: (() => void) | undefined;
  /** For telemetry; a shared request has the cause of the caller who sent it first. Undefined: the gateway itself. */
  readonly cause: Cause | undefined;
}

/** `interactive`: a caller waits for this one answer. `drain`: it is one of the many pages of a walk. */
export type Priority = 'interactive' | 'drain';

/** Sends requests to the service: an `Executor` of graphql-tools. */
export interface ServiceExecutor {
  /** @throws coded errors, and the abort reason of the sender's signal */
  <T>(request: ServiceRequest<T>): Promise<ServiceResult<T>>;
  /**
   * Resolves to a result with a coded error if the request fails, like the HTTP executor of graphql-tools.
   *
   * @throws the abort reason of the request's signal
   */
  (request: ExecutionRequest): Promise<ExecutionResult>;
}

/**
 * A request whose JSON was written before, and whose answer is read from its bytes. It is an `ExecutionRequest` all the
 * same: its document and its variables are made from that JSON when somebody reads them.
 */
export class ServiceRequest<T> implements ExecutionRequest {
  readonly outgoing: OutgoingRequest<T>;
  readonly context: Sender;
  #members: BodyMembers | undefined;
  #document: DocumentNode | undefined;

  constructor(outgoing: OutgoingRequest<T>, sender: Sender) {
    this.outgoing = outgoing;
    this.context = sender;
  }

  get operationType(): OperationTypeNode {
    return this.outgoing.kind as OperationTypeNode;
  }

  get signal(): AbortSignal {
    return this.context.signal;
  }

  get document(): DocumentNode {
    return (this.#document ??= parse(this.#body.query, { noLocation: true }));
  }

  get operationName(): string {
    // Of an operation without a name it is undefined, which the type of graphql-tools does not allow for a member.
    return this.#body.operationName!;
  }

  get variables(): Record<string, unknown> {
    return this.#body.variables ?? {};
  }

  get #body(): BodyMembers {
    return (this.#members ??= JSON.parse(this.outgoing.body) as BodyMembers);
  }
}

interface BodyMembers {
  readonly query: string;
  readonly operationName?: string;
  readonly variables?: Record<string, unknown>;
}

/** The root field that an operation selects, the first of several. */
export function firstField(document: DocumentNode, operationName?: string): string {
  let within: SelectionSetNode | undefined = getOperationAST(document, operationName)?.selectionSet;
  while (within) {
    const [first]: readonly SelectionNode[] = within.selections;
    if (first?.kind === Kind.FIELD) return first.name.value;
    within =
      first?.kind === Kind.FRAGMENT_SPREAD
        ? fragmentOf(document, first.name.value)?.selectionSet
        : first?.selectionSet;
  }
  return '';
}

function fragmentOf(
  { definitions }: DocumentNode,
  name: string,
): FragmentDefinitionNode | undefined {
  return definitions.find(
    (one): one is FragmentDefinitionNode =>
      one.kind === Kind.FRAGMENT_DEFINITION && one.name.value === name,
  );
}
