import type { GraphQLSchema } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import { codedError } from '../../errors.ts';
import type { Exchange, Reply, Stage } from '../exchange/exchange.ts';
import { errorOf } from '../telemetry/outcome.ts';
import { codeRefusedRequests } from './error-policy.ts';

export interface RefusalParts {
  /** The one that is served. */
  readonly schema: GraphQLSchema;
  /** What every error goes through. */
  readonly mask: (error: unknown) => Error;
}

export interface Refusals {
  /** Answers what a stage threw. */
  readonly refuse: (exchange: Exchange, error: unknown) => Promise<Reply>;
  /** For a caller who accepts no format of ours. */
  readonly notAcceptable: Stage;
}

interface RefusalContext {
  exchange: Exchange;
  error: unknown;
}

/**
 * Yoga, behind the stages: it answers what they refuse, with the status and in the format that the caller's `accept`
 * asks for (GraphQL over HTTP, 6.4). It reads nothing of the request and executes nothing.
 */
export function createRefusals({ schema, mask }: RefusalParts): Refusals {
  const yoga = createYoga<RefusalContext, RefusalContext>({
    schema,
    graphqlEndpoint: PATH,
    healthCheckEndpoint: NO_ADDRESS,
    landingPage: false,
    cors: false,
    graphiql: false,
    multipart: false,
    maxRequestBodySize: false,
    parserAndValidationCache: false,
    logging: false,
    maskedErrors: { maskError: mask },
    plugins: [refuseAtOnce, codeRefusedRequests, noteOutcome],
  });
  const { handleRequest } = yoga;
  const { Request } = yoga.fetchAPI;

  const refuse = async (exchange: Exchange, error: unknown): Promise<Reply> => {
    const accept = exchange.header('accept');
    const request = new Request(`http://localhost${PATH}`, {
      // Of a request this is all that is left to look at. A POST may be any operation.
      method: 'POST',
      headers: accept === undefined ? {} : { accept },
    });
    return replyOf(await handleRequest(request, { exchange, error }));
  };
  return {
    refuse,
    notAcceptable: (exchange) =>
      refuse(exchange, codedError('BAD_USER_INPUT', 'Accept application/json.')),
  };
}

const PATH = '/graphql';
/** For a probe that Yoga cannot be made without: no address ends so. */
const NO_ADDRESS = ' ';

type RefusalPlugin = Plugin<RefusalContext, RefusalContext>;

const refuseAtOnce: RefusalPlugin = {
  onRequestParse: ({ serverContext: { error } }) => {
    throw error;
  },
};

/** Behind the plugin that gives errors their codes. */
const noteOutcome: RefusalPlugin = {
  onResultProcess: ({ serverContext: { exchange }, result }) => {
    if (!Array.isArray(result) && 'errors' in result) exchange.outcome = errorOf(result);
  },
};

async function replyOf(response: Response): Promise<Reply> {
  const named = [...response.headers].map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    status: response.status,
    headers: Object.fromEntries(named),
    body: await response.text(),
  };
}
