import type { ServerResponse } from 'node:http';
import { getOperationAST, type DocumentNode, type ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin, type YogaInitialContext } from 'graphql-yoga';
import { isKnownPath } from '../known-paths.ts';
import { errorOf, outcomeOfStatus, type Outcome } from './outcome.ts';
import { requestIdOf } from './request-id.ts';

/** One request, for whoever watches. */
export interface WatchedRequest {
  /** Does what there is to be done for it. */
  run<T>(work: () => T): T;
  /** Once, when all of the answer is sent, or the connection has ended before. */
  ended(end: RequestEnd): void;
}

export interface RequestBegin {
  readonly requestId: string;
  /** Undefined where nothing is served: an address that somebody made up may hold a key, or name people. */
  readonly path: string | undefined;
  /** Of a balancer, which asks all the time. */
  readonly isProbe: boolean;
}

export interface RequestEnd {
  /** Undefined when the caller left before there was one. */
  readonly status: number | undefined;
  /** Undefined when none was executed. */
  readonly operationType: string | undefined;
  /** The name of a trusted operation; empty for any other. */
  readonly operation: string;
  readonly outcome: Outcome;
}

export interface RequestWatch {
  begun(request: Request, begin: RequestBegin): WatchedRequest;
  /** The name of the trusted operation that a request asks for; empty for any other. */
  readonly operationOf: (request: Request) => string;
}

interface Seen {
  readonly requestId: string;
  readonly watched: WatchedRequest;
  operationType?: string;
  result?: ExecutionResult;
  /** The first error of an answer in parts. */
  error?: Outcome | undefined;
  isEnded?: boolean;
}

/**
 * Names every request, says the name in the answer, and tells how it ended; of a stream when it is over. No query
 * string, no document, no variables are looked at, since they may name people.
 */
export function watchRequests(watch: RequestWatch): Plugin<YogaInitialContext> {
  const requests = new WeakMap<Request, Seen>();
  return {
    instrumentation: {
      // Around all plugins: what Yoga's own answer, before ours are asked, has a name as well.
      request: ({ request }, work) => {
        const requestId = requestIdOf(request.headers);
        const path = new URL(request.url).pathname;
        const isProbe = path === '/health' || path === '/ready';
        const begin = { requestId, path: isKnownPath(path) ? path : undefined, isProbe };
        const watched = watch.begun(request, begin);
        requests.set(request, { requestId, watched });
        return watched.run(work);
      },
    },
    onRequest: ({ request, serverContext }) => {
      const response = nodeResponse(serverContext);
      response?.once('close', () => end(request, response));
    },
    onExecute: ({ args }) => {
      const seen = requests.get(args.contextValue.request);
      if (!seen) return undefined;
      const { operation } =
        getOperationAST(args.document as DocumentNode, args.operationName) ?? {};
      if (operation) seen.operationType = operation;
      return {
        onExecuteDone: ({ result }) =>
          isAsyncIterable(result)
            ? { onNext: (part) => void (seen.error ??= errorOf(part.result)) }
            : undefined,
      };
    },
    onResultProcess: ({ request, result }) => {
      const seen = requests.get(request);
      // Read at the end: other plugins give the errors their codes.
      if (seen && !Array.isArray(result) && !isAsyncIterable(result)) seen.result = result;
    },
    onResponse: ({ request, response, serverContext }) => {
      const seen = requests.get(request);
      if (seen) response.headers.set('x-request-id', seen.requestId);
      const node = nodeResponse(serverContext);
      if (!node || node.closed) end(request, node ?? response);
      // One that Yoga answered before our `onRequest`; otherwise the second call does nothing.
      else node.once('close', () => end(request, node));
    },
  };

  function end(request: Request, response: Response | ServerResponse): void {
    const seen = requests.get(request);
    if (!seen || seen.isEnded) return;
    seen.isEnded = true;
    const isLeft =
      'writableFinished' in response ? !response.writableFinished : request.signal.aborted;
    const status = 'statusCode' in response ? sentStatus(response) : response.status;
    seen.watched.ended({
      status,
      operationType: seen.operationType,
      operation: watch.operationOf(request),
      outcome: isLeft ? 'LEFT' : outcomeOf(seen, status ?? 500),
    });
  }
}

function outcomeOf({ result, error, operationType }: Seen, status: number): Outcome {
  const code = error ?? (result && errorOf(result));
  return code ?? (operationType ? 'OK' : outcomeOfStatus(status));
}

function sentStatus({ headersSent, statusCode }: ServerResponse): number | undefined {
  return headersSent ? statusCode : undefined;
}

/** Behind a Node server, which knows when an answer is sent whole. */
function nodeResponse(context: object): ServerResponse | undefined {
  return (context as { readonly res?: ServerResponse }).res;
}
