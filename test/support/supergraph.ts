import { composed } from './composition.ts';
import { startPayroll, type PayrollSubgraph } from './payroll-subgraph.ts';
import { startRecruiting, type RecruitingSubgraph } from './recruiting-subgraph.ts';
import { startReviews, type ReviewsOptions, type ReviewsSubgraph } from './reviews-subgraph.ts';
import type { Router, RouterEndpoint } from './router.ts';

/** The recruiting subgraph between two of others, composed, behind a router. */
export interface Supergraph extends AsyncDisposable, RouterEndpoint {
  readonly recruiting: RecruitingSubgraph;
  readonly reviews: ReviewsSubgraph;
  readonly payroll: PayrollSubgraph;
  /** Counts requests from here. */
  forget(): void;
}

export interface SupergraphOptions {
  /** SCHEMA_PREFIX */
  readonly prefix?: string;
  readonly pageInfo?: ReviewsOptions['pageInfo'];
}

/** The credential that the router has for the recruiting subgraph. */
export const ROUTER_KEY = 'key-of-the-router';

/** Nobody has it. The first review is by such a person, and the second by none. */
export const UNKNOWN_ID = 'nobody';

export async function startSupergraph(
  router: Router,
  { prefix = '', pageInfo = '' }: SupergraphOptions = {},
): Promise<Supergraph> {
  const recruiting = await startRecruiting({ prefix });
  const ids = recruiting.persons.map(({ id }) => id);
  const person = `${prefix}Person`;
  const payroll = await startPayroll(ids, person);
  const reviews = await startReviews([UNKNOWN_ID, null, ...ids], { person, pageInfo });
  const subgraphs = [recruiting, payroll, reviews];
  const close = async () => {
    for (const subgraph of subgraphs) await subgraph[Symbol.asyncDispose]();
  };
  try {
    const endpoint = await router.serve(composed(subgraphs), { recruiting: ROUTER_KEY });
    return {
      ...endpoint,
      recruiting,
      reviews,
      payroll,
      forget: () => {
        for (const { received } of subgraphs) received.length = 0;
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
