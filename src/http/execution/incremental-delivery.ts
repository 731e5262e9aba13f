import { GraphQLError, type DocumentNode, type ExecutionArgs, type ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { codedError } from '../../errors.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { deliveryFor, SPEC } from './accept.ts';

/** What executes operations with `@defer` and `@stream`. */
export interface Incremental {
  /** The document for one answer. */
  whole(document: DocumentNode): DocumentNode;
  isAsked(args: ExecutionArgs): boolean;
  execute(args: ExecutionArgs, execute: (args: ExecutionArgs) => Answer): Answer;
}

type Answer = Promise<ExecutionResult | AsyncIterable<ExecutionResult>>;

/**
 * Answers operations with `@defer` and `@stream` in parts, as `multipart/mixed`, to callers that can read this.
 * Everybody else gets one answer.
 *
 * @param mask what every error goes through
 */
export function incrementalDelivery(
  incremental: Incremental,
  mask: (error: unknown) => Error,
): Plugin<{ exchange: Exchange }, { exchange: Exchange }> {
  const refused = new WeakSet<Exchange>();
  return {
    onExecute: ({ args, executeFn, setExecuteFn, setResultAndStopExecution }) => {
      const { exchange } = args.contextValue;
      if (!exchange.operation?.isIncremental) return undefined;
      const delivery = deliveryFor(exchange.header('accept'));
      try {
        if (!incremental.isAsked(args) || delivery === 'whole') {
          const document = incremental.whole(args.document as DocumentNode);
          setExecuteFn((given) => executeFn({ ...given, document }));
        } else if (delivery === 'parts') {
          setExecuteFn((given) => incremental.execute(given, executeFn));
        } else {
          refused.add(exchange);
          throw notSpoken();
        }
      } catch (error) {
        setResultAndStopExecution({ errors: [error] });
      }
      return {
        onExecuteDone: ({ result }) =>
          isAsyncIterable(result)
            ? { onNext: (part) => part.setResult(maskedParts(part.result, mask)) }
            : undefined,
      };
    },
    onResultProcess: ({ serverContext: { exchange }, setResultProcessor }) => {
      if (!refused.has(exchange)) return;
      const headers = { 'content-type': 'application/json; charset=utf-8' };
      const body = JSON.stringify({ errors: [notSpoken()] });
      setResultProcessor(
        (_result, { Response }) => new Response(body, { status: 406, headers }),
        'application/json',
      );
    },
  };
}

function notSpoken() {
  return codedError(
    'BAD_USER_INPUT',
    'What comes later is sent here as multipart/mixed, in the format of 2022-08-24. Send "accept: ' +
      `multipart/mixed;deferSpec=${SPEC}", or accept application/json alone to get everything in one answer.`,
  );
}

interface Payload {
  readonly incremental?: readonly { readonly errors?: readonly unknown[] }[];
}

/** Yoga masks the errors of a payload, and not those of the parts inside it. */
function maskedParts<P extends object>(payload: P, mask: (error: unknown) => Error): P {
  const { incremental } = payload as Payload;
  if (!incremental?.some(({ errors }) => errors)) return payload;
  const parts = incremental.map((part) =>
    part.errors ? { ...part, errors: part.errors.map((error) => plain(mask(error))) } : part,
  );
  return { ...payload, incremental: parts };
}

/** Without what is for the server only. */
function plain(error: Error): Error {
  if (!(error instanceof GraphQLError) || !('http' in error.extensions)) return error;
  const { http: _, ...extensions } = error.extensions;
  return new GraphQLError(error.message, {
    nodes: error.nodes ?? null,
    path: error.path ?? null,
    extensions,
  });
}
