import type { GraphQLError } from 'graphql';
import type { DrainBudget } from '../paging/drain.ts';
import type { PageMeter } from '../paging/price/page-meter.ts';
import type { AskingContext } from './asking/asking-context.ts';
import type { RequestLoader } from './asking/request-loader.ts';
import type { RecordLoader } from './entities/record-loader.ts';
import type { StreamedLists } from './streaming/streamed-lists.ts';

/** What the resolvers need of the request that they work for. */
export interface ServingContext extends AskingContext {
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  /** The queries that the operation sends. */
  readonly requests: RequestLoader;
  /** The records that it asks for by their ids. */
  readonly records: RecordLoader;
  /** What it costs. */
  readonly pages: PageMeter;
  /** Shared by all drains of the operation. */
  readonly drainBudget: DrainBudget;
  /** Errors of the upstream beyond the one that a null can carry. Added to the answer at its end. */
  readonly surplusErrors: GraphQLError[];
  readonly streams?: StreamedLists;
}
