import { GraphQLError, type ExecutionResult } from 'graphql';
import type { Logger } from 'pino';
import {
  codedError,
  errorsThrown,
  knownCode,
  means,
  messageForCallers,
  OperatorError,
  type ErrorCode,
} from '../errors.ts';
import type { Exchange } from './exchange.ts';
import type { Reply } from './reply.ts';
import { replyOf } from './results.ts';

/** A request, as far as its errors need it: callers report its id to the operator, and telemetry counts the first one. */
type Failing = Pick<Exchange, 'requestId'> & Partial<Pick<Exchange, 'outcome'>>;

export type ErrorPolicy = ReturnType<typeof createErrorPolicy>;

/** Decides how errors reach callers. Refusals have the status that `accept` requires (GraphQL over HTTP, 6.4). */
export function createErrorPolicy(log: Logger) {
  /** Requests for which an error for the operator is logged, in one line of each. */
  const reported = new WeakSet<Failing>();

  const logged = (cause: unknown, { requestId }: Failing): string => {
    log.error({ requestId, err: cause }, 'unexpected error');
    return requestId;
  };

  /** Logs the message for the operator, and gives callers the id of the request. */
  const ofOperator = (error: GraphQLError, origin: OperatorError, exchange: Failing) => {
    const { requestId } = exchange;
    if (!reported.has(exchange)) {
      reported.add(exchange);
      log[origin.needsOperator ? 'error' : 'warn']({ requestId, err: origin }, UNAVAILABLE);
    }
    const isItself = error.message === origin.message;
    return withId(error, requestId, isItself ? messageForCallers(origin) : error.message);
  };

  const masked = (error: unknown, exchange: Failing): GraphQLError => {
    if (isForCallers(error)) {
      const cause = causeOf(error);
      if (cause instanceof OperatorError) return ofOperator(error, cause, exchange);
      const isExpected = !(cause instanceof Error) || isForCallers(cause) || isAbort(cause);
      return isExpected ? error : withId(error, logged(cause, exchange));
    }
    if (isAbort(error)) return codedError('INTERNAL_SERVER_ERROR', CANCELLED);
    const at = error instanceof GraphQLError ? error : undefined;
    const id = logged(at?.originalError ?? error, exchange);
    const code: ErrorCode = 'INTERNAL_SERVER_ERROR';
    return withMessage(at, `${UNEXPECTED}: ${id}`, { id, code });
  };

  /**
   * Replaces an unexpected error with one that shows only the id of the request, which is logged with the error.
   * Replaces the message of an error for the operator with one for callers, with the same id.
   */
  const mask = (error: unknown, exchange: Failing): GraphQLError => {
    const shown = masked(error, exchange);
    exchange.outcome ??= knownCode(shown.extensions['code']);
    return shown;
  };

  return {
    mask,
    /** Answers an error that a stage threw. `extensions` are those of the answer, which plugins may have added. */
    refuse: (
      exchange: Exchange,
      thrown: unknown,
      extensions?: ExecutionResult['extensions'],
    ): Reply => {
      const errors = errorsThrown(thrown).map((error) => coded(mask(error, exchange)));
      exchange.outcome = knownCode(errors[0]?.extensions['code']);
      const reply = replyOf({ errors, ...(extensions && { extensions }) }, exchange);
      // A cache would repeat it to callers that may have the answer.
      return { ...reply, headers: { ...reply.headers, 'cache-control': 'no-store' } };
    },
    /**
     * Ends an answer that has begun. Logs its failure, because nothing else could report it.
     *
     * @returns what a reader through `fetch` gets instead of the error
     */
    cutOff: (exchange: Exchange, error: unknown): Error => {
      const failure = exchange.hasLeft ? error : new Error(CUT_OFF, { cause: error });
      const shown = mask(failure, exchange);
      exchange.cutOff();
      return shown;
    },
  };
}

const UNAVAILABLE = 'the recruiting service was reported to a caller as temporarily unavailable';
const UNEXPECTED = 'An unexpected error happened in the gateway. Report this id to its operator';
const CANCELLED = 'The request was cancelled by its caller.';
const CUT_OFF = 'An answer was cut off, because the rest of it could not be written.';

/**
 * Sets the code `BAD_USER_INPUT` on errors without a code of the gateway: no field was executed, so the caller is at
 * fault.
 */
function coded(error: GraphQLError): GraphQLError {
  const { code } = error.extensions;
  if (code === 'INTERNAL_SERVER_ERROR') error.extensions['http'] ??= { status: 500, spec: true };
  if (means(code, 'refusal')) return error;
  Object.assign(error.extensions, { code: 'BAD_USER_INPUT' });
  error.extensions['http'] ??= { status: 400, spec: true };
  return error;
}

/** An error that the gateway or the service made for callers has only GraphQL errors as its originals. */
function isForCallers(error: unknown): error is GraphQLError {
  for (let inner: unknown = error; ;) {
    // Yoga marks the errors that it makes of thrown strings and other values.
    if (!(inner instanceof GraphQLError) || inner.extensions['unexpected'] === true) return false;
    if (!inner.originalError) return true;
    inner = inner.originalError;
  }
}

function isAbort(error: unknown): boolean {
  const cause = error instanceof GraphQLError ? error.originalError : error;
  return (cause as Error | undefined)?.name === 'AbortError';
}

/** Returns what was thrown first; of a drain that was interrupted, what interrupted it. */
function causeOf(error: GraphQLError): unknown {
  let origin: Error = error;
  while (origin instanceof GraphQLError && origin.originalError) origin = origin.originalError;
  const isInterruption = error.extensions['code'] === ('DRAIN_INTERRUPTED' satisfies ErrorCode);
  return isInterruption ? origin.cause : origin;
}

function withId(error: GraphQLError, id: string, message = error.message): GraphQLError {
  return withMessage(error, `${message} Report this id to the operator of the gateway: ${id}`, {
    ...error.extensions,
    id,
  });
}

/** Returns another error of the same place. */
function withMessage(
  at: GraphQLError | undefined,
  message: string,
  extensions = at?.extensions,
): GraphQLError {
  const { nodes, path } = at ?? {};
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    path: path ?? null,
    extensions: extensions ?? null,
  });
}
