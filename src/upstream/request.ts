import type { GraphQLError } from 'graphql';
import type { Cause } from '../cause.ts';
import type { Json } from '../json.ts';
import type { Pausable } from '../pausable.ts';

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

export interface AnswerReader<T> {
  /** Returns undefined for an answer that only `read` can take. Default: `read` takes all. */
  readonly scan?: ((bytes: Buffer) => Pausable<T | undefined>) | undefined;
  /** @param answer an object with `data`, or a list of `errors`, or both */
  readonly read: (answer: Json, status: number) => Pausable<T>;
}

/** What one HTTP answer of the service, or its absence, means. */
export type UpstreamAnswer =
  | UpstreamResult
  | UpstreamFailure
  | (Unusable & { readonly kind: 'unauthorized'; readonly status: number; readonly detail: string })
  | (Unusable & {
      readonly kind: 'rate-limited';
      /** Seconds; negative for a date in the past. */
      readonly retryAfter: number | undefined;
    });

/** An answer without a result. */
interface Unusable {
  /** The service's id of the request, if callers may see it. */
  readonly requestId?: string;
}

export interface UpstreamResult {
  readonly kind: 'result';
  /** What the request's reader made of the answer. Shared by all callers of the request: it must not be changed. */
  readonly value: unknown;
  readonly hasErrors: boolean;
  readonly readAs: ReadAs;
}

/** By the scanner, where the answer has the promised form; otherwise value by value, which costs more. */
export type ReadAs = 'scanned' | 'general';

export interface UpstreamFailure extends Unusable {
  readonly kind: 'failure';
  readonly error: GraphQLError;
  /** Whether the failure may be gone when the request is sent again. */
  readonly isTemporary: boolean;
  /** The GraphQL result that came with a 5xx status: callers get it when no attempt brings a better one. */
  readonly result?: UpstreamResult;
}
