import { composed } from './composition.ts';
import { startPayroll, type PayrollSubgraph } from './payroll-subgraph.ts';
import { ROUTER_KEY, startRecruiting, type RecruitingSubgraph } from './recruiting-subgraph.ts';
import { startReviews, type ReviewsOptions, type ReviewsSubgraph } from './reviews-subgraph.ts';
import { startRouter, type Router } from './router.ts';

/** The recruiting subgraph composed with two others, behind a router. */
export interface Supergraph extends Router {
  readonly recruiting: RecruitingSubgraph;
  readonly reviews: ReviewsSubgraph;
  readonly payroll: PayrollSubgraph;
  /** Counts requests from this call on. */
  forget(): void;
}

export interface SupergraphOptions {
  /** SCHEMA_PREFIX */
  readonly prefix?: string;
  /** The name of the service's query root. */
  readonly root?: string;
  readonly pageInfo?: ReviewsOptions['pageInfo'];
}

/** The id of a person who does not exist, to whom the first review refers. The second has no author. */
export const UNKNOWN_ID = 'nobody';

export async function startSupergraph({
  prefix = '',
  root = 'Query',
  pageInfo = '',
}: SupergraphOptions = {}): Promise<Supergraph> {
  const recruiting = await startRecruiting({ prefix, root });
  const ids = recruiting.persons.map(({ id }) => id);
  const person = `${prefix}Person`;
  const payroll = await startPayroll(ids, person);
  const reviews = await startReviews([UNKNOWN_ID, null, ...ids], { person, pageInfo });
  const subgraphs = [recruiting, payroll, reviews];
  const close = async () => {
    for (const subgraph of subgraphs) await subgraph[Symbol.asyncDispose]();
  };
  try {
    const router = await startRouter({
      supergraph: composed(subgraphs),
      env: { RECRUITING_KEY: ROUTER_KEY },
    });
    return {
      ...router,
      recruiting,
      reviews,
      payroll,
      forget: () => {
        for (const { received } of subgraphs) received.length = 0;
      },
      [Symbol.asyncDispose]: async () => {
        await router[Symbol.asyncDispose]();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
