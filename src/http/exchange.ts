import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLError } from 'graphql';
import type { Cause } from '../cause.ts';
import { badRequest, codedError, type ErrorCode } from '../errors.ts';
import type { CheckedOperation } from '../operations/operations.ts';
import type { CallVariables } from '../engine/call.ts';
import { JSON_TYPE } from './accept.ts';
import type { TakeTurn } from './loop-turns.ts';
import {
  BodiesTooLarge,
  BodyParts,
  BodyTooLarge,
  readBody,
  type BodyLimits,
  type RequestMemory,
} from '../memory/byte-limit.ts';

/**
 * One step of answering a request. It replies, or returns undefined so that the next stage continues. Errors that it
 * throws are answered as a refused GraphQL request. A stage that does not wait returns no promise.
 */
export type Stage = (exchange: Exchange) => Reply | undefined | Promise<Reply | undefined>;

/** A stage that only refuses: it throws, and does not wait. */
export type Check = (exchange: Exchange) => undefined;

export type Checks = readonly (Check | undefined)[];

/** In their order; undefined for a stage that is switched off by the settings. */
export type Stages = readonly (Stage | undefined)[];

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
 * How a request ended: `OK`; the code of its first error, `OTHER` for a code of the service; `LEFT` if the connection
 * ended before the answer was complete.
 */
export type Outcome = 'OK' | 'OTHER' | 'LEFT' | ErrorCode;

/** A request over a socket, as Node and the frameworks on top of it pass it to their handlers. */
export interface NodeMessages {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/**
 * One request, with the facts that the stages have found out about it. It is the same for a request over a socket and
 * through `fetch`, and reads nothing from the request before a stage needs it.
 */
export class Exchange {
  readonly method: string;
  /** The path as it was sent, up to the question mark. */
  readonly path: string;
  /** The text after the question mark; empty without one. */
  readonly query: string;
  /** Undefined through `fetch`. */
  readonly node: NodeMessages | undefined;
  readonly #fetched: Request | undefined;

  constructor(from: NodeMessages | Request) {
    if (from instanceof Request) {
      const { pathname, search } = new URL(from.url);
      this.method = from.method;
      this.path = pathname;
      this.query = search.slice(1);
      this.node = undefined;
      this.#fetched = from;
      this.#leaveBy(from.signal);
      return;
    }
    const { method = '', url = '' } = from.req;
    const mark = url.indexOf('?');
    this.method = method;
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = mark < 0 ? '' : url.slice(mark + 1);
    this.node = from;
    this.#fetched = undefined;
  }

  /** The name by which the caller addresses this server; undefined without one, as HTTP/1.0 allows. */
  get host(): string | undefined {
    if (this.node) return this.node.req.headers.host;
    return this.header('host') ?? new URL(this.#fetched!.url).host;
  }

  /** The IP address of the connection; undefined without a connection. */
  get peer(): string | undefined {
    return this.node?.req.socket.remoteAddress;
  }

  /** @param name in lower case */
  header(name: string): string | undefined {
    if (!this.node) return this.#fetched!.headers.get(name) ?? undefined;
    const value = this.node.req.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
  }

  /** The memory of its head, and of the objects that every request has, bytes. */
  get headBytes(): number {
    let bytes = BYTES_OF_ANY + this.path.length + this.query.length;
    if (this.node) {
      for (const text of this.node.req.rawHeaders) bytes += BYTES_OF_TEXT + text.length;
    } else {
      for (const [name, value] of this.#fetched!.headers) bytes += name.length + value.length;
    }
    return bytes;
  }

  /** Drops the headers. Call it when they are not read any more. */
  dropHead(): void {
    if (!this.node) return;
    const { node, headBytes } = this;
    node.req.rawHeaders = [];
    // Yoga's request has the same object.
    const { headers } = node.req;
    for (const name in headers) delete headers[name];
    this.letGo(headBytes - this.headBytes);
  }

  /** Ends its connection without an answer, and all later requests of it. */
  hangUp(): void {
    this.node?.req.socket.destroy();
  }

  /** Whether its answer waits for those to earlier requests of its connection. */
  get isBehindOthers(): boolean {
    // Node gives a response the connection when it is its turn.
    return this.node?.res.socket === null;
  }

  /**
   * Reads the body as UTF-8, once.
   *
   * @param takeTurn called when all of it has arrived; a body that waits for its turn counts as arriving
   * @throws BodyTooLarge, BodiesTooLarge; AbortError if the caller leaves
   */
  readBody(limits: BodyLimits, takeTurn: TakeTurn): Promise<string> {
    if (!this.node) return this.#readFetched(limits, takeTurn);
    const { req } = this.node;
    // It would never end a second time.
    if (req.readableEnded) return Promise.reject(badRequest(READ_BEFORE));
    return new Promise((resolve, reject) => {
      const parts = new BodyParts(limits);
      const stop = (reason: unknown) => {
        parts.drop();
        req.off('data', onData).off('end', onEnd).pause();
        this.offLeave(onLeave);
        reject(reason);
      };
      const onData = (part: Buffer) => {
        try {
          parts.add(part);
        } catch (error) {
          // Destroying the request would close the connection before the caller has the answer.
          stop(error);
        }
      };
      const onEnd = () => {
        // These listeners would keep the text alive, through the promise, as long as the request.
        req.off('data', onData).off('end', onEnd);
        this.offLeave(onLeave);
        const turn = takeTurn();
        if (turn) void turn.then(decode);
        else decode();
      };
      const decode = () => {
        if (this.hasLeft) return stop(CALLER_LEFT);
        const text = textOf(parts.bytes());
        parts.drop();
        resolve(text);
      };
      const onLeave = () => {
        stop(CALLER_LEFT);
      };
      req.on('data', onData).on('end', onEnd);
      this.onLeave(onLeave);
    });
  }

  async #readFetched(limits: BodyLimits, takeTurn: TakeTurn): Promise<string> {
    const { body } = this.#fetched!;
    if (!body) return '';
    try {
      const text = await readBody(body, limits);
      await takeTurn();
      return text;
    } catch (error) {
      if (error instanceof BodyTooLarge || error instanceof BodiesTooLarge) throw error;
      if (this.hasLeft) throw CALLER_LEFT;
      throw codedError('BAD_USER_INPUT', UNREADABLE, { cause: error });
    }
  }

  /** The id of this request in the log, in the answer and at the service. */
  requestId = '';
  /** What resolvers get as their context. Set by the handler. */
  context: object | undefined = undefined;
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
  /** The name of a trusted operation, or its id if it has none; empty for any other operation. */
  trustedName = '';
  operation: CheckedOperation | undefined = undefined;
  /** The variables that the operation declares. */
  variables: CallVariables = NO_VARIABLES;
  /** Whether a plan has made a result for plugins. */
  isExecuted = false;
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

  /** The reason of the signal of a request through `fetch`; undefined if that was not aborted. */
  get leftBecause(): unknown {
    const { aborted, reason } = this.#fetched?.signal ?? NOT_ABORTED;
    return aborted ? reason : undefined;
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
      this.onLeave(() => controller.abort(CALLER_LEFT));
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
   * @returns whether the request may continue
   */
  hold(bytes: number, memory: RequestMemory): boolean {
    if (this.#hasEnded) return true;
    this.#memory = memory;
    this.#held += bytes;
    return memory.add(bytes, this.#held);
  }

  /** Drops the parameters. Call it when they are not read any more. */
  dropParams(): void {
    this.params = NO_PARAMS;
  }

  /** Reverses `hold`. */
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

  #leaveBy(signal: AbortSignal): void {
    const leave = () => this.leave();
    if (signal.aborted) return leave();
    signal.addEventListener('abort', leave);
    // The signal may outlive many requests.
    this.onEnd(() => signal.removeEventListener('abort', leave));
  }
}

/** Removes the byte order mark that some clients send before their JSON. */
function textOf(bytes: Buffer): string {
  const text = bytes.toString();
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** A waiting request with its response and its connection, without headers; measured. */
const BYTES_OF_ANY = 14 * 1024;
/** Overhead of a header's name or value: each pair is kept in a list and in an object. */
const BYTES_OF_TEXT = 55;

const READ_BEFORE =
  'Something in front of the gateway has read the body of this request. Whoever runs it mounts the gateway before body parsers.';
const UNREADABLE =
  'The body could not be read to its end. Send it again, in a stream of bytes that was not read before.';

/** Made once: a thousand callers may leave at once, and an error with its stack costs more than the rest. */
export const CALLER_LEFT = new DOMException('The caller left.', 'AbortError');

const NOT_ABORTED = { aborted: false, reason: undefined };
const NO_PARAMS: Params = {};
const NO_VARIABLES: CallVariables = { values: {}, sent: {} };

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
export type MaskFor = (error: unknown, exchange: Pick<Exchange, 'requestId'>) => GraphQLError;

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

/**
 * Counts the heads of requests, and refuses requests for which there is not enough memory. A probe is still answered,
 * because its memory is soon free, unless it waits behind other requests of its connection.
 */
export function holdRequests(memory: RequestMemory): Stage {
  return (exchange) => {
    if (exchange.hold(exchange.headBytes, memory)) return undefined;
    if (isProbe(exchange.path) && !exchange.isBehindOthers) return undefined;
    exchange.dropHead();
    // What remains of a refused request is in memory until the caller has read the refusal.
    if (memory.isFarExceeded) exchange.hangUp();
    return noMemory(exchange, memory);
  };
}

/** The reply to a request for which there is not enough memory. Its connection ends, because its rest is not read. */
export function noMemory(exchange: Exchange, memory: RequestMemory): Reply {
  const reply = rateLimited(exchange, 429, memory.refusal());
  return { ...reply, headers: { ...reply.headers, connection: 'close' } };
}

/** Whether load balancers and orchestrators request this path, which they do continuously. */
export function isProbe(path: string): boolean {
  return path === '/health' || path === '/ready';
}
