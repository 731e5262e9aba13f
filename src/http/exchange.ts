import type { Cause } from '../cause.ts';
import type { ErrorCode } from '../errors.ts';
import type { Inbound } from './inbound.ts';
import type { Reply } from './reply.ts';

/**
 * One step of answering a request. It replies, or returns undefined so that the next stage continues. Errors that it
 * throws are answered as a refused GraphQL request. A stage that does not wait returns no promise.
 *
 * @param context what resolvers get as their context
 */
export type Stage = (
  exchange: Exchange,
  context: object,
) => Reply | undefined | Promise<Reply | undefined>;

/** In their order; undefined for a stage that is switched off by the settings. */
export type Stages = readonly (Stage | undefined)[];

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

/** What the log and the metrics say about a request. It is written on the way, and read at the end only. */
interface Notes {
  /** The name of a trusted operation, or its id if it has none; empty for any other operation. */
  trustedName: string;
  /** Undefined until the operation is executed. */
  operationType: string | undefined;
  /** The code of the first error of the answer. */
  outcome: Outcome | undefined;
}

/** Who a request is to everything that is done for it. */
interface Identity {
  /** In the log, in the answer and at the service. */
  readonly requestId: string;
  readonly cause: Cause | undefined;
}

/** One request and its answer, from when it arrives until the answer is complete or the caller has left. */
export class Exchange {
  readonly inbound: Inbound;
  readonly requestId: string;
  readonly cause: Cause | undefined;
  /** Headers of the answer, whichever stage replies. Names in lower case. */
  readonly replyHeaders: Record<string, string>;
  readonly notes: Notes = {
    trustedName: '',
    operationType: undefined,
    outcome: undefined,
  };
  /** Set by the authentication; undefined if callers need no credential. */
  caller: Caller | undefined;
  #stoppedBy: 'caller' | 'gateway' | undefined;
  #leaving: (() => void)[] | undefined;
  #ending: (() => void)[] | undefined;
  #hasEnded = false;
  #signal: AbortController | undefined;

  constructor(inbound: Inbound, { requestId, cause }: Identity) {
    this.inbound = inbound;
    this.requestId = requestId;
    this.cause = cause;
    this.replyHeaders = { 'x-request-id': requestId };
    if (inbound.fetched) this.#leaveBy(inbound.fetched.signal);
  }

  get method(): string {
    return this.inbound.method;
  }

  get path(): string {
    return this.inbound.path;
  }

  /** @param name in lower case */
  header(name: string): string | undefined {
    return this.inbound.header(name);
  }

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
    else (this.#leaving ??= []).push(listener);
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

  /** Called by the transport. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const listener of this.#ending ?? []) listener();
    this.#ending = undefined;
  }

  /** Called by the transport. */
  leave(): void {
    this.#stop('caller');
  }

  /** Called by the transport when the rest of the answer cannot be written. */
  cutOff(): void {
    this.notes.outcome = 'INTERNAL_SERVER_ERROR';
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

/** Made once: a thousand callers may leave at once, and an error with its stack costs more than the rest. */
export const CALLER_LEFT = new DOMException('The caller left.', 'AbortError');

/** Measures and logs each exchange. */
export interface ExchangeTelemetry {
  begun(inbound: Inbound): Identity;
  /**
   * Called once, when the answer is complete or the caller has left.
   *
   * @param status undefined if there was no answer yet
   */
  ended(exchange: Exchange, status: number | undefined): void;
}

/** Whether load balancers and orchestrators request this path, which they do continuously. */
export function isProbe(path: string): boolean {
  return path === '/health' || path === '/ready';
}
