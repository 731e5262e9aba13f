import { hash } from 'node:crypto';
import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import {
  getOperationAST,
  GraphQLError,
  OperationTypeNode,
  parse,
  print,
  type DocumentNode,
} from 'graphql';
import type { Cause } from '../cause.ts';
import { codedError } from '../errors.ts';
import type { Json } from '../json.ts';
import { inOneStep, type Pausable } from '../pausable.ts';
import type { Slots } from '../queue.ts';
import { fieldsIn, fragmentsOf } from '../selections.ts';

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

/** Characters. V8 hashes strings longer than this by their length only. */
const LONGEST = 16_383;

/**
 * Returns the key of a request in a map: its body and key, or their digest if they are long. Requests of one operation
 * often have the same length, and a map with many long ones would compare each with all others, character by character:
 * 200 of 60 KB take 0.3 s.
 */
export function keyOf({ body, key = '' }: Pick<OutgoingRequest, 'body' | 'key'>): string {
  const text = body + key;
  return text.length > LONGEST ? hash('sha256', text, 'base64') : text;
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
  /** Shared by the requests of an operation that must not all be sent at once. Each waits for one of them first. */
  readonly slots?: Slots | undefined;
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
 * A request that is written already, as JSON, and whose answer is read from its bytes. It is an `ExecutionRequest` too:
 * its document and its variables are parsed from that JSON on first use.
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

/**
 * Prints the document of a request that `wrapSchema` or another gateway made. Its `extensions` are not sent, and its
 * `context` is not read.
 *
 * @throws BAD_USER_INPUT for a subscription, and for a document without the operation
 */
export function printedRequest({
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

/** Differs from the keys of requests that have a reader: their bodies may be the same. */
const UNREAD = 'unread';

/** The root field that an operation selects, the first of several. */
export function firstField(document: DocumentNode, operationName?: string): string {
  const selections = getOperationAST(document, operationName)?.selectionSet.selections ?? [];
  const [field] = fieldsIn(selections, fragmentsOf(document));
  return field?.name.value ?? '';
}

/**
 * The result of a request. Its members are made from the answer on first use: mostly only the reading is used. To copy
 * it, use `plain()`, because the members are getters.
 */
export class ServiceResult<T> implements ExecutionResult {
  /** What the reader of the request made of the answer. Equal requests share it: it must not be changed. */
  readonly reading: T;
  readonly #answer: Buffer | string;
  #members: PlainResult | undefined;

  /** @param answer JSON: an object with `data`, or a list of `errors`, or both */
  constructor(reading: T, answer: Buffer | string) {
    this.reading = reading;
    this.#answer = answer;
  }

  // The types of graphql-tools know members that are left out, but none that are undefined.
  get data(): Record<string, unknown> | null {
    return this.plain().data!;
  }

  get errors(): readonly GraphQLError[] {
    return this.plain().errors!;
  }

  get extensions(): Record<string, unknown> {
    return this.plain().extensions!;
  }

  plain(): PlainResult {
    return (this.#members ??= membersOf(this.#answer));
  }
}

type PlainResult = ExecutionResult<Record<string, unknown>, Record<string, unknown>>;

function membersOf(answer: Buffer | string): PlainResult {
  const { data, errors, extensions } = JSON.parse(String(answer)) as Pick<PlainResult, 'data'> &
    Readonly<Record<string, unknown>>;
  return {
    ...(data !== undefined && { data }),
    ...(Array.isArray(errors) &&
      errors.length > 0 && { errors: errors.slice(0, MAX_ERRORS).map(errorOf) }),
    ...(isObject(extensions) && { extensions }),
  };
}

/** Each has a stack trace. */
const MAX_ERRORS = 3_000;

function errorOf(error: unknown): GraphQLError {
  const { message, path, extensions, locations }: Record<string, unknown> = isObject(error)
    ? error
    : {};
  const graphQLError = new GraphQLError(
    typeof message === 'string' ? message : 'The recruiting service reported an error.',
    {
      ...(Array.isArray(path) && { path: path as (string | number)[] }),
      ...(isObject(extensions) && { extensions }),
    },
  );
  return Array.isArray(locations) ? Object.assign(graphQLError, { locations }) : graphQLError;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the headers that name this client, for every address of the service. The service documents `Api-User-Agent`
 * (interface, 4.3); services like it refuse requests without a `User-Agent` of the form `name/version (contact)`.
 */
export function agentHeaders(agent: string): Readonly<Record<string, string>> {
  return { 'user-agent': agent, 'api-user-agent': agent };
}

/**
 * Returns the service's id of a request, by which its support finds the request; undefined without a harmless one.
 *
 * @param secrets the tokens of the request and of its answer: an id that contains one is ignored
 */
export function requestIdOfService(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  ...secrets: readonly string[]
): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' &&
    HARMLESS.test(id) &&
    !secrets.some((secret) => id.includes(secret))
    ? id
    : undefined;
}

/** Short, and without characters that have a meaning in a log, a terminal or JSON. */
const HARMLESS = /^[\w.:/+=@-]{1,128}$/;

/** All three forms that a date may have in HTTP (RFC 9110, section 5.6.7) begin with the day of the week. */
const HTTP_DATE = /^(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d\d:\d\d:\d\d/i;

/**
 * Seconds that a Retry-After header says to wait (RFC 9110, section 10.2.3); negative for a date in the past,
 * undefined for anything else.
 *
 * @param now in ms
 */
export function parseRetryAfter(
  header: string | readonly string[] | undefined,
  now: number,
): number | undefined {
  if (typeof header !== 'string') return undefined;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // Date.parse alone finds a date in nearly any text that contains a number.
  const date = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : (date - now) / 1000;
}

const DEFAULT_S = 60;
const LONGEST_S = 3600;

/** Returns the whole seconds after which to send a request again: 1 to 3600, and 60 if the header does not help. */
export function secondsToWait(header: string | readonly string[] | undefined, now: number): number {
  const seconds = parseRetryAfter(header, now);
  if (seconds === undefined || seconds < 0) return DEFAULT_S;
  return Math.min(Math.max(Math.ceil(seconds), 1), LONGEST_S);
}
