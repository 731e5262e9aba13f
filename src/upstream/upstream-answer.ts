import type { GraphQLError } from 'graphql';

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
  /** The answer itself, JSON. */
  readonly answer: Buffer | string;
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
