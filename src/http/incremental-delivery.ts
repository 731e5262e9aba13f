import type { DocumentNode, ExecutionArgs, ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin, type YogaInitialContext } from 'graphql-yoga';
import { codedError } from '../errors.ts';
import { maskedParts } from './incremental-errors.ts';
import { deliveryFor, SPEC } from './incremental-format.ts';
import { incrementalRules } from './incremental-rules.ts';

/** What executes operations with `@defer` and `@stream`. */
export interface Incremental {
  /** The document for one answer; the same one when nothing in it is to come later. */
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
): Plugin<YogaInitialContext> {
  const refused = new WeakSet<Request>();
  return {
    onValidate: ({ addValidationRule }) => addValidationRule(incrementalRules),
    onExecute: ({ args, executeFn, setExecuteFn, setResultAndStopExecution }) => {
      const whole = incremental.whole(args.document as DocumentNode);
      if (whole === args.document) return undefined;
      const { request } = args.contextValue;
      const delivery = deliveryFor(request.headers.get('accept'));
      try {
        if (!incremental.isAsked(args) || delivery === 'whole') {
          setExecuteFn((given) => executeFn({ ...given, document: whole }));
        } else if (delivery === 'parts') {
          setExecuteFn((given) => incremental.execute(given, executeFn));
        } else {
          refused.add(request);
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
    onResponse: ({ response: { headers } }) => {
      if (!headers.get('content-type')?.startsWith('multipart/mixed')) return;
      // Yoga's own, which would hold a connection open that the client or a stopping server wants closed.
      headers.delete('connection');
      headers.delete('transfer-encoding');
    },
    onResultProcess: ({ request, setResultProcessor }) => {
      if (!refused.has(request)) return;
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
