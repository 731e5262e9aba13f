import { executedSupergraph, type ExecutedSupergraph } from './executed.ts';
import { startPayroll, type PayrollSubgraph } from './payroll-subgraph.ts';
import { ROUTER_KEY, startRecruiting, type RecruitingSubgraph } from './recruiting-subgraph.ts';
import { startReviews, type ReviewsOptions, type ReviewsSubgraph } from './reviews-subgraph.ts';

/** The recruiting subgraph and two others. */
export interface Subgraphs extends AsyncDisposable {
  readonly recruiting: RecruitingSubgraph;
  readonly reviews: ReviewsSubgraph;
  readonly payroll: PayrollSubgraph;
  /** Counts requests from this call on. */
  forget(): void;
}

/** The subgraphs composed, and executed in this process. */
export type Supergraph = Subgraphs & ExecutedSupergraph;

export interface SupergraphOptions {
  /** SCHEMA_PREFIX */
  readonly prefix?: string;
  readonly pageInfo?: ReviewsOptions['pageInfo'];
}

/** The id of a person who does not exist, to whom the first review refers. The second has no author. */
export const UNKNOWN_ID = 'nobody';

export async function startSubgraphs({
  prefix = '',
  pageInfo = '',
}: SupergraphOptions = {}): Promise<Subgraphs> {
  const recruiting = await startRecruiting(prefix);
  const ids = recruiting.persons.map(({ id }) => id);
  const person = `${prefix}Person`;
  const payroll = await startPayroll(ids, person);
  const reviews = await startReviews([UNKNOWN_ID, null, ...ids], { person, pageInfo });
  const subgraphs = [recruiting, payroll, reviews];
  return {
    recruiting,
    reviews,
    payroll,
    forget: () => {
      for (const { received } of subgraphs) received.length = 0;
    },
    [Symbol.asyncDispose]: async () => {
      for (const subgraph of subgraphs) await subgraph[Symbol.asyncDispose]();
    },
  };
}

export async function startSupergraph(options: SupergraphOptions = {}): Promise<Supergraph> {
  const subgraphs = await startSubgraphs(options);
  const { recruiting, payroll, reviews } = subgraphs;
  const executed = executedSupergraph([recruiting, payroll, reviews], {
    recruiting: { 'x-api-key': ROUTER_KEY },
  });
  return { ...subgraphs, ...executed };
}
