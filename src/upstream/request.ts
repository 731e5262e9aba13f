import type { GraphQLError } from 'graphql';

/** A request to the service, as it is sent. */
export interface OutgoingRequest {
  /** Only queries are shared and sent again. */
  readonly kind: 'query' | 'mutation';
  /** JSON. */
  readonly body: string;
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
  /** For telemetry; a shared request has the cause of the caller who sent it first. Undefined: the gateway itself. */
  readonly cause: Cause | undefined;
}

/** Identifies a caller's request to everything that is done for it. Only `telemetry` reads and writes its contents. */
export interface Cause {
  readonly requestId: string;
  /** When it began, by `performance.now()`. */
  readonly begun: number;
  /** The name that the client says it has. */
  readonly client: string | undefined;
  upstreamRequests: number;
  pages: number;
}

/** `interactive`: a caller waits for this one answer. `drain`: it is one of the many pages of a walk. */
export type Priority = 'interactive' | 'drain';

/**
 * Sends a request, or passes it on: the type of everything between a caller and the connections. Rejects with the
 * abort reason of the sender's signal, and with what the tokens throw.
 */
export type Send = (request: OutgoingRequest, sender: Sender) => Promise<Outcome>;

export type Wrapper = (next: Send) => Send;

export type Outcome = UpstreamAnswer | Failure;

/**
 * A GraphQL answer, as it arrived: an object with `data`, or a list of `errors`, or both. Its bytes are not always parsed
 * before, so they may still turn out not to be JSON. Equal queries share it.
 */
export class UpstreamAnswer {
  readonly kind = 'answer';
  readonly status: number;
  /** UTF-8, without a byte order mark. */
  readonly bytes: Buffer;
  readonly hasErrors: boolean;
  /** Whether it is data without errors, by how it is written: it was not parsed. */
  readonly isPlainData: boolean;
  #text: string | undefined;

  constructor(status: number, bytes: Buffer, hasErrors: boolean, isPlainData = false) {
    this.status = status;
    this.bytes = bytes;
    this.hasErrors = hasErrors;
    this.isPlainData = isPlainData;
  }

  get text(): string {
    return (this.#text ??= this.bytes.toString());
  }
}

/** The end of a request without a usable answer. */
export interface Failure {
  readonly kind: 'failure';
  readonly error: GraphQLError;
  /** Whether the request may succeed when it is sent again. Default: no. */
  readonly isTemporary?: boolean;
  /** Whether nothing was sent. Default: no. */
  readonly isUnsent?: boolean;
  /** The least wait before it is sent again, if the service stated one, ms. */
  readonly retryAfterMs?: number | undefined;
  /** The service refused the token. After a 401, a newer one may help. */
  readonly refusal?: { readonly status: 401 | 403; readonly detail: string };
  /** A GraphQL answer with status 5xx: callers get it if no attempt brings a better one. */
  readonly answer?: UpstreamAnswer | undefined;
}
