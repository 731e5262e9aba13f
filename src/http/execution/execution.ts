import type { GraphQLError, GraphQLSchema } from 'graphql';
import { createYoga, isAsyncIterable, useExecutionCancellation, type Plugin } from 'graphql-yoga';
import type { Exchange, Reply, Stage } from '../exchange/exchange.ts';
import { errorOf } from '../telemetry/outcome.ts';
import { codeRefusedRequests } from './error-policy.ts';

export interface ExecutionParts {
  /** The one that is served. */
  readonly schema: GraphQLSchema;
  /** What the resolvers need of the request that they work for. */
  readonly contextOf: (exchange: Exchange) => object;
  /** What every error goes through. */
  readonly mask: (error: unknown) => Error;
  readonly plugins: readonly ExecutionPlugin[];
}

export type ExecutionPlugin = Plugin<ExecutionContext, ExecutionContext>;

export interface ExecutionContext {
  exchange: Exchange;
  /** Errors of the upstream beyond the one that a null can carry. */
  surplusErrors?: GraphQLError[];
}

export interface Execution {
  /** Executes an operation that all stages have let through. */
  readonly execute: Stage;
  /** Answers what a stage threw. */
  readonly refuse: (exchange: Exchange, error: unknown) => Promise<Reply>;
}

/**
 * Yoga, behind the stages: it executes, and writes results and errors in the format that the caller accepts. It
 * reads nothing of the request, parses nothing and checks nothing, since the stages have done so.
 */
export function createExecution({ schema, contextOf, mask, plugins }: ExecutionParts): Execution {
  const refusals = new WeakMap<Exchange, { readonly error: unknown }>();
  const yoga = createYoga<ExecutionContext, ExecutionContext>({
    schema,
    context: ({ exchange }) => ({ exchange, ...contextOf(exchange) }),
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
    plugins: [
      takeOver((exchange) => refusals.get(exchange)),
      useExecutionCancellation(),
      ...plugins,
      codeRefusedRequests,
      noteOutcome,
    ],
  });
  const { handleRequest } = yoga;
  const { Request } = yoga.fetchAPI;

  const answer = async (exchange: Exchange): Promise<Reply> => {
    const accept = exchange.header('accept');
    const request = new Request(`http://localhost${PATH}`, {
      // Of a request this is all that is left to look at. A POST may be any operation.
      method: 'POST',
      headers: accept === undefined ? {} : { accept },
      signal: exchange.signal,
    });
    return replyOf(await handleRequest(request, { exchange }));
  };
  return {
    execute: answer,
    refuse: (exchange, error) => {
      refusals.set(exchange, { error });
      return answer(exchange);
    },
  };
}

const PATH = '/graphql';
/** For a probe that Yoga cannot be made without: no address ends so. */
const NO_ADDRESS = ' ';

type Refusal = { readonly error: unknown } | undefined;

/** Hands over what the stages have read and checked. */
function takeOver(refusalOf: (exchange: Exchange) => Refusal): ExecutionPlugin {
  return {
    onRequestParse: ({ serverContext: { exchange }, setRequestParser }) => {
      const refusal = refusalOf(exchange);
      if (refusal) throw refusal.error;
      setRequestParser(() => exchange.params);
    },
    onParse: ({ context: { exchange }, setParsedDocument }) => {
      if (!exchange.operation) throw new Error('No stage has found this operation.');
      setParsedDocument(exchange.operation.document);
    },
    onValidate: ({ setResult }) => setResult([]),
  };
}

/** Behind the plugins that give errors their codes. */
const noteOutcome: ExecutionPlugin = {
  onExecute: ({ args }) => ({
    onExecuteDone: ({ result }) =>
      isAsyncIterable(result)
        ? { onNext: (part) => void (args.contextValue.exchange.outcome ??= errorOf(part.result)) }
        : undefined,
  }),
  onResultProcess: ({ serverContext: { exchange }, result }) => {
    if (!Array.isArray(result) && !isAsyncIterable(result)) exchange.outcome = errorOf(result);
  },
};

async function replyOf(response: Response): Promise<Reply> {
  const { status, body } = response;
  const named = [...response.headers].map(([name, value]) => [name.toLowerCase(), value] as const);
  const headers: Record<string, string> = Object.fromEntries(named);
  const isStream = /^(multipart|text\/event-stream)/.test(headers['content-type'] ?? '');
  if (!isStream) return { status, headers, body: await response.text() };
  // Yoga's own, which would hold a connection open that the client or a stopping server wants closed.
  delete headers['connection'];
  delete headers['transfer-encoding'];
  return { status, headers, body: body as AsyncIterable<Uint8Array> };
}
