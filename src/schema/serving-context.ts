import type { GraphQLError } from 'graphql';
import type { DrainBudget } from '../paging/drain.ts';
import type { RequestLoader } from './asking/request-loader.ts';
import type { StreamedLists } from './streaming/streamed-lists.ts';

/** What asking the upstream needs of whoever asks. */
export interface AskingContext {
  readonly requests: Pick<RequestLoader, 'load'>;
}

/** What the resolvers need of the request that they work for. */
export interface ServingContext extends AskingContext {
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  /** The queries that the operation sends. */
  readonly requests: RequestLoader;
  /** Shared by all drains of the operation. */
  readonly drainBudget: DrainBudget;
  /** Errors of the upstream beyond the one that a null can carry. Added to the answer at its end. */
  readonly surplusErrors: GraphQLError[];
  readonly streams?: StreamedLists;
}
