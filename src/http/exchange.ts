import type { GraphQLError } from 'graphql';
import type { Cause } from '../cause.ts';
import type { ErrorCode } from '../errors.ts';
import type { CheckedOperation } from '../operations/operations.ts';
import type { CallVariables } from '../plans/call.ts';
import type { BodyLimits } from '../read-body.ts';
import type { RequestMemory } from '../request-memory.ts';

/**
 * One step of answering a request. It replies, or returns undefined for the next stage to continue. What it throws is
 * answered as a refused GraphQL request. A stage that does not wait for anything returns no promise.
 */
export type Stage = (exchange: Exchange) => Reply | undefined | Promise<Reply | undefined>;

/**
 * Answers a valid and allowed operation, with the variables of the exchange. Undefined if the caller accepts none of its
 * formats.
 *
 * @throws errors that are answered as a refused request: with `errors`, and without `data`
 */
export type Answer<Plan> = (
  operation: CheckedOperation<Plan>,
  exchange: Exchange,
) => Reply | undefined | Promise<Reply | undefined>;

/** The parameters of a GraphQL request as they were sent, unchecked. */
export type Params = Readonly<Record<string, unknown>>;

/** The identity of an authenticated caller. */
export interface Caller {
  /**
   * `key:` and the name of an API key, or `sub:` and the subject of a token: the prefixes keep the two apart. The
   * subject may be a person, so it must not be logged.
   */
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
}

/**
 * How a request ended: `OK`; the code of its first error, `OTHER` for an error of the service's own; `LEFT` if the
 * connection ended before the answer was complete.
 */
export type Outcome = 'OK' | 'OTHER' | 'LEFT' | ErrorCode;

/**
 * One request, and what the stages have found out about it. It is the same for a request over a socket and for one
 * through `fetch`, and reads nothing from the request before a stage asks for it.
 */
export abstract class Exchange {
  abstract readonly method: string;
  /** As it was sent, up to the question mark. */
  abstract readonly path: string;
  /** The text after the question mark; empty without one. */
  abstract readonly query: string;
  /** The name by which the caller addresses this server; undefined if it gives none, as HTTP/1.0 may. */
  abstract readonly host: string | undefined;
  /** The IP address of the connection; undefined without a connection. */
  abstract readonly peer: string | undefined;
  /** @param name in lower case */
  abstract header(name: string): string | undefined;
  /**
   * Reads the body as UTF-8, once.
   *
   * @throws BodyTooLarge, BodiesTooLarge; AbortError if the caller leaves
   */
  abstract readBody(limits: BodyLimits): Promise<string>;
  /** The memory of its head, and of all that is made for any request, bytes. */
  abstract readonly headBytes: number;
  /** Forgets its headers. To be called when nothing reads them any more. */
  abstract dropHead(): void;
  /** Ends its connection without an answer, and all later requests of it. */
  abstract hangUp(): void;
  /** Whether its answer waits for those to earlier requests of its connection. */
  abstract readonly isBehindOthers: boolean;

  /** The id of this request in the log, in the answer and at the service. */
  requestId = '';
  /** Identifies this request in everything that is done for it. Set by telemetry. */
  cause: Cause | undefined = undefined;
  /** Headers of the answer, whichever stage replies. Names in lower case. */
  readonly replyHeaders: Record<string, string> = {};
  /** Undefined if callers need no credential. */
  caller: Caller | undefined = undefined;
  /** The name whose minute of pages the operation is charged to, and whether one operation may cost many pages. */
  budgetOwner: { readonly name: string; readonly mayDrain: boolean } | undefined = undefined;
  /** Empty once the variables are coerced, or there is a reply: the values that are not used may be large. */
  params: Params = NO_PARAMS;
  /**
   * The text of the variables, with every number as it was written; undefined if JavaScript can hold all of them, and
   * once the variables are coerced, or there is a reply.
   */
  writtenVariables: string | undefined = undefined;
  /** The name of a trusted operation, or its id if it has none; empty for any other operation. */
  trustedName = '';
  operation: CheckedOperation | undefined = undefined;
  /** Those that the operation declares. */
  variables: CallVariables = NO_VARIABLES;
  /** Undefined until the operation is executed. */
  operationType: string | undefined = undefined;
  /** The code of the first error of the answer. */
  outcome: Outcome | undefined = undefined;

  #stoppedBy: 'caller' | 'gateway' | undefined;
  #leaving: Set<() => void> | undefined;
  #ending: (() => void)[] | undefined;
  #hasEnded = false;
  #signal: AbortController | undefined;
  #memory: RequestMemory | undefined;
  #held = 0;

  /** Whether the caller left before the answer was complete. */
  get hasLeft(): boolean {
    return this.#stoppedBy === 'caller';
  }

  /**
   * Calls the listener when the caller leaves before the answer is complete, or the answer is cut off; at once if that
   * has already happened.
   */
  onLeave(listener: () => void): void {
    if (this.#stoppedBy) listener();
    else (this.#leaving ??= new Set()).add(listener);
  }

  offLeave(listener: () => void): void {
    this.#leaving?.delete(listener);
  }

  /** Aborted when the caller leaves or the answer is cut off. Created on first use, because `onLeave` costs less. */
  get signal(): AbortSignal {
    if (!this.#signal) {
      const controller = new AbortController();
      this.#signal = controller;
      this.onLeave(() => controller.abort(new DOMException('The caller left.', 'AbortError')));
    }
    return this.#signal.signal;
  }

  /** Calls the listener when the answer is complete or the caller has left; at once if that has already happened. */
  onEnd(listener: () => void): void {
    if (this.#hasEnded) listener();
    else (this.#ending ??= []).push(listener);
  }

  /**
   * Counts bytes that this request keeps in memory until it ends.
   *
   * @returns whether it may go on
   */
  hold(bytes: number, memory: RequestMemory): boolean {
    if (this.#hasEnded) return true;
    this.#memory = memory;
    this.#held += bytes;
    return memory.add(bytes, this.#held);
  }

  /** Forgets its parameters. To be called when nothing reads them any more. */
  dropParams(): void {
    this.params = NO_PARAMS;
    this.writtenVariables = undefined;
  }

  /** The opposite of `hold`. */
  letGo(bytes: number): void {
    if (!this.#memory || this.#hasEnded) return;
    this.#held -= bytes;
    this.#memory.remove(bytes);
  }

  /** Called by the transport. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#memory?.remove(this.#held);
    for (const listener of this.#ending ?? []) listener();
    this.#ending = undefined;
  }

  /** Called by the transport. */
  leave(): void {
    this.#stop('caller');
  }

  /** Called by the transport when the rest of the answer cannot be written. */
  cutOff(): void {
    this.outcome = 'INTERNAL_SERVER_ERROR';
    this.#stop('gateway');
  }

  #stop(by: 'caller' | 'gateway'): void {
    if (this.#stoppedBy || this.#hasEnded) return;
    this.#stoppedBy = by;
    for (const listener of this.#leaving ?? []) listener();
    this.#leaving = undefined;
  }
}

const NO_PARAMS: Params = {};
const NO_VARIABLES: CallVariables = {
  values: {},
  text: () => undefined,
  given: () => undefined,
};

export interface Reply {
  readonly status: number;
  /** Names in lower case. The transport adds `content-length` if it knows it. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Undefined: empty. An iterable is read as fast as the caller reads, and ended when the caller leaves. What it
   * throws is logged, and the answer is cut off; over a socket, an error is answered if nothing was sent yet.
   */
  readonly body?: Body | AsyncIterable<Body> | undefined;
}

export type Body = Piece | readonly Piece[];
/** A Buffer is a piece too. */
export type Piece = string | Uint8Array;

export function isPiece(body: Body | AsyncIterable<Body>): body is Piece {
  return typeof body === 'string' || body instanceof Uint8Array;
}

/** Replaces an unexpected error by one for callers. @param exchange whose answer the error is part of */
export type MaskFor = (error: unknown, exchange: Exchange) => Error;

export function isStream(body: Reply['body']): body is AsyncIterable<Body> {
  return body !== undefined && !isPiece(body) && !Array.isArray(body);
}

/** Makes the reply of a stage that refuses a request itself, as a GraphQL answer in JSON. No cache keeps it. */
export function errorReply(status: number, error: Error): Reply {
  return {
    status,
    headers: { 'content-type': JSON_TYPE, 'cache-control': 'no-store' },
    body: JSON.stringify({ errors: [error] }),
  };
}

/**
 * Makes the reply to a request that is refused only for now, without the work that Yoga would have with it.
 *
 * @param error RATE_LIMITED, with `retryAfter`
 */
export function rateLimited(exchange: Exchange, status: 429 | 503, error: GraphQLError): Reply {
  exchange.outcome = 'RATE_LIMITED';
  const { headers, body } = errorReply(status, error);
  const retryAfter = String(error.extensions['retryAfter']);
  return { status, headers: { ...headers, 'retry-after': retryAfter }, body };
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** Measures and logs each exchange. */
export interface ExchangeTelemetry {
  /** Gives the exchange its id and its cause, and runs the work. */
  run<T>(exchange: Exchange, work: () => T): T;
  /**
   * Called once, when the answer is complete or the caller has left.
   *
   * @param status undefined if there was no answer yet
   */
  ended(exchange: Exchange, status: number | undefined): void;
}

/** The outcome of an answer that is not a GraphQL answer. */
export function outcomeOfStatus(status: number): Outcome {
  if (status < 400) return 'OK';
  if (status >= 500) return 'INTERNAL_SERVER_ERROR';
  return BY_STATUS[status] ?? 'BAD_USER_INPUT';
}

const BY_STATUS: Readonly<Record<number, Outcome>> = {
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  421: 'FORBIDDEN',
  429: 'RATE_LIMITED',
};
