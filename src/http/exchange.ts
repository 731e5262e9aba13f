import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Cause } from '../upstream/request.ts';
import type { Caller, CallOrigin } from '../engine/call.ts';
import type { ErrorCode } from '../errors.ts';
import type { Reply } from './reply.ts';

/**
 * One step of answering a request. It replies, or returns undefined so that the next stage continues. Errors that it
 * throws are answered as a refused GraphQL request. A stage that does not wait returns no promise.
 */
export type Stage = (exchange: Exchange) => Reply | undefined | Promise<Reply | undefined>;

/** In their order; undefined for a stage that is switched off by the settings. */
export type Stages = readonly (Stage | undefined)[];

/**
 * How a request ended: `OK`; the code of its first error, `OTHER` for a code of the service; `LEFT` if the connection
 * ended before the answer was complete.
 */
export type Outcome = 'OK' | 'OTHER' | 'LEFT' | ErrorCode;

/** A request over a socket, as Node and the frameworks on top of it pass it to their handlers. */
type NodeMessages = Readonly<{ req: IncomingMessage; res: ServerResponse }>;

/** One request and its answer, from when it arrives until the answer is complete or the caller has left. */
export class Exchange implements CallOrigin {
  readonly method: string;
  /** The path as it was sent, up to the question mark. */
  readonly path: string;
  /** The text after the question mark; empty without one. */
  readonly query: string;
  /** Undefined through `fetch`. */
  readonly node: NodeMessages | undefined;
  /** Undefined over a socket. */
  readonly fetched: Request | undefined;
  /** In the log, in the answer and at the service. */
  readonly requestId: string;
  readonly cause: Cause;
  /** Headers of the answer, whichever stage replies. Names in lower case. */
  readonly replyHeaders: Record<string, string>;
  /** Set by the authentication; undefined if callers need no credential. */
  caller: Caller | undefined;
  address = '';
  /** For telemetry: the name of a trusted operation, or its id if it has none; empty for any other operation. */
  trustedName = '';
  /** For telemetry: what was wrong with the credential; undefined if nothing was. */
  refused: string | undefined;
  /** For telemetry: undefined until the operation is executed. */
  operationType: string | undefined;
  /** For telemetry: undefined until the first error of the answer. */
  outcome: Outcome | undefined;
  /** What resolvers get as their context. */
  context: object = {};
  /** Whether the caller left before the answer was complete. */
  hasLeft = false;
  #ending: (() => void)[] | undefined;
  #hasEnded = false;
  #isStopped = false;
  #stopping: AbortController | undefined;

  constructor(from: NodeMessages | Request, telemetry: ExchangeTelemetry) {
    if (from instanceof Request) {
      const { pathname, search } = new URL(from.url);
      this.method = from.method;
      this.path = pathname;
      this.query = search.slice(1);
      this.fetched = from;
    } else {
      const { method = '', url = '' } = from.req;
      const mark = url.indexOf('?');
      this.method = method;
      this.path = mark < 0 ? url : url.slice(0, mark);
      this.query = mark < 0 ? '' : url.slice(mark + 1);
      this.node = from;
    }
    this.cause = telemetry.begun(this);
    this.requestId = this.cause.requestId;
    this.replyHeaders = { 'x-request-id': this.requestId };
  }

  /** The name by which the caller addresses this server; undefined without one, as HTTP/1.0 allows. */
  get host(): string | undefined {
    return this.header('host') ?? (this.fetched && new URL(this.fetched.url).host);
  }

  /** Headers are read when they are asked for, because most requests need only a few. @param name in lower case */
  header(name: string): string | undefined {
    if (!this.node) return this.fetched!.headers.get(name) ?? undefined;
    const value = this.node.req.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
  }

  /** Aborted when the caller leaves before the answer is complete, or the answer is cut off. Created on first use. */
  get signal(): AbortSignal {
    this.#stopping ??= new AbortController();
    if (this.#isStopped) this.#stopping.abort(CALLER_LEFT);
    return this.#stopping.signal;
  }

  /** Calls the listener when the answer is complete or the caller has left; at once if that has already happened. */
  onEnd(listener: () => void): void {
    if (this.#hasEnded) listener();
    else (this.#ending ??= []).push(listener);
  }

  /** Called by the transport when the answer is complete, or cannot be. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const listener of this.#ending ?? []) listener();
    this.#ending = undefined;
  }

  /** Called by the transport when the connection has ended; also after the answer has ended or was cut off. */
  leave(): void {
    if (!this.#hasEnded && !this.#isStopped) {
      this.hasLeft = true;
      this.#stop();
    }
    this.end();
  }

  /** Called by the transport when the rest of the answer cannot be written. */
  cutOff(): void {
    this.outcome = 'INTERNAL_SERVER_ERROR';
    this.#stop();
  }

  #stop(): void {
    this.#isStopped = true;
    this.#stopping?.abort(CALLER_LEFT);
  }
}

/** Made once: a thousand callers may leave at once, and an error with its stack costs more than the rest. */
export const CALLER_LEFT = new DOMException('The caller left.', 'AbortError');

/** Measures and logs each exchange. */
export interface ExchangeTelemetry {
  /** Identifies a request to everything that is done for it. */
  begun(request: Pick<Exchange, 'header'>): Cause;
  /**
   * Called once, when the answer is complete or the caller has left.
   *
   * @param status undefined if there was no answer yet
   */
  ended(exchange: Exchange, status: number | undefined): void;
}
