import type { Cause } from '../../cause.ts';
import type { Json } from '../../json.ts';
import type { CheckedOperation } from '../../operations/operations.ts';
import type { Caller } from '../auth/caller.ts';
import type { Outcome } from '../telemetry/outcome.ts';

/** The parameters of a request of GraphQL, as they were sent: nothing of them is checked. */
export type Params = Readonly<Record<string, unknown>>;

/** In whose name pages are charged, and whether they may be many. */
export interface Payer {
  readonly name: string;
  readonly mayDrain: boolean;
}

/**
 * One request, and what the stages have found out about it. It is the same for a request over a socket and for one
 * through `fetch`, and makes nothing of a request that no stage asks for.
 */
export abstract class Exchange {
  abstract readonly method: string;
  /** As it was sent, up to the question mark. */
  abstract readonly path: string;
  /** What is behind the question mark; empty without one. */
  abstract readonly query: string;
  /** The name that the caller uses for this server; undefined when it gives none, as HTTP/1.0 may. */
  abstract readonly host: string | undefined;
  /** The IP address of the connection; undefined without a connection. */
  abstract readonly peer: string | undefined;
  /** @param name in lower case */
  abstract header(name: string): string | undefined;
  /**
   * Reads the body as UTF-8, once, and never more than `maxBytes` of it.
   *
   * @throws BodyTooLarge; AbortError when the caller leaves
   */
  abstract readBody(maxBytes: number): Promise<string>;

  /** What the log, the answer and the service call this request. */
  requestId = '';
  /** What stands for this request in all that is done for it. Set by telemetry. */
  cause: Cause | undefined = undefined;
  /** Headers of the answer, whichever stage gives it. Names in lower case. */
  readonly replyHeaders: Record<string, string> = {};
  /** Undefined where callers are not asked who they are. */
  caller: Caller | undefined = undefined;
  payer: Payer | undefined = undefined;
  params: Params = {};
  /** The variables with every number as it was written, where JavaScript cannot hold one of them. */
  exactVariables: Json | undefined = undefined;
  /** Of a trusted operation its name, or else its id; empty for any other. */
  trustedName = '';
  operation: CheckedOperation | undefined = undefined;
  /** Coerced. */
  variables: Readonly<Record<string, unknown>> = {};
  /** Undefined while nothing is executed. */
  operationType: string | undefined = undefined;
  /** The code of the first error of the answer. */
  outcome: Outcome | undefined = undefined;

  #hasLeft = false;
  #leaving: Set<() => void> | undefined;
  #ending: (() => void)[] | undefined;
  #hasEnded = false;
  #signal: AbortController | undefined;

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Calls the listener when the caller leaves before the answer is sent whole; at once when that has happened. */
  onLeave(listener: () => void): void {
    if (this.#hasLeft) listener();
    else (this.#leaving ??= new Set()).add(listener);
  }

  offLeave(listener: () => void): void {
    this.#leaving?.delete(listener);
  }

  /** Is aborted when the caller leaves. Made when it is first read: `onLeave` costs less. */
  get signal(): AbortSignal {
    if (!this.#signal) {
      const controller = new AbortController();
      this.#signal = controller;
      this.onLeave(() => controller.abort(new DOMException('The caller left.', 'AbortError')));
    }
    return this.#signal.signal;
  }

  /** Calls the listener when the answer is sent whole, or the caller has left; at once when that has happened. */
  onEnd(listener: () => void): void {
    if (this.#hasEnded) listener();
    else (this.#ending ??= []).push(listener);
  }

  /** For the adapter. */
  end(): void {
    this.#hasEnded = true;
    for (const listener of this.#ending ?? []) listener();
    this.#ending = undefined;
  }

  /** For the adapter. */
  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    for (const listener of this.#leaving ?? []) listener();
    this.#leaving = undefined;
  }
}

/** A Buffer is one. */
export type Piece = string | Uint8Array;
export type Body = Piece | readonly Piece[];

/** An answer. */
export interface Reply {
  readonly status: number;
  /** Names in lower case. The adapter adds `content-length` where it knows it. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Undefined: empty. An iterable is read as fast as the caller reads, and ended when the caller leaves. What it
   * throws is logged, and cuts the connection.
   */
  readonly body?: Body | AsyncIterable<Body> | undefined;
}

/**
 * Answers the exchange, or lets it go on to the next stage. What it throws is answered as a refused request of
 * GraphQL. A stage that has nothing to wait for returns no promise.
 */
export type Stage = (exchange: Exchange) => Reply | undefined | Promise<Reply | undefined>;

export function isPieces(body: Body | AsyncIterable<Body>): body is readonly Piece[] {
  return Array.isArray(body);
}

export function isPiece(body: Body | AsyncIterable<Body>): body is Piece {
  return typeof body === 'string' || body instanceof Uint8Array;
}

/** The headers of an answer together with those that every answer of this exchange gets. */
export function headersOf({ headers }: Reply, { replyHeaders }: Exchange): Record<string, string> {
  const all = { ...headers, ...replyHeaders };
  const { vary } = headers;
  if (vary !== undefined && replyHeaders['vary'] !== undefined) {
    all['vary'] = `${vary}, ${replyHeaders['vary']}`;
  }
  return all;
}
