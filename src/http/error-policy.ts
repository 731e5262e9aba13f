import { GraphQLError, type ExecutionResult } from 'graphql';
import type { Logger } from 'pino';
import {
  codedError,
  codeOf,
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

  /** Logs what callers must not read. @returns the id by which they report it */
  const logged = (cause: unknown, exchange: Failing): string => {
    const { requestId } = exchange;
    const line = { requestId, err: cause };
    if (!(cause instanceof OperatorError)) log.error(line, 'unexpected error');
    else if (!reported.has(exchange)) {
      reported.add(exchange);
      log[means(codeOf(cause), 'lasting') ? 'error' : 'warn'](line, UNAVAILABLE);
    }
    return requestId;
  };

  const masked = (error: unknown, exchange: Failing): GraphQLError => {
    const at = error instanceof GraphQLError ? error : undefined;
    const thrown = thrownFirst(error);
    // A drain that was interrupted says so to its caller, whatever interrupted it.
    const isInterruption = codeOf(thrown) === ('DRAIN_INTERRUPTED' satisfies ErrorCode);
    const cause = (isInterruption && (thrown as Error).cause) || thrown;
    if (at && (isForCallers(cause) || (isInterruption && isAbort(cause)))) return at;
    if (isAbort(cause)) return codedError('INTERNAL_SERVER_ERROR', CANCELLED);
    const id = logged(cause, exchange);
    if (at && isInterruption) return withId(at, id);
    if (at && cause instanceof OperatorError) return withId(at, id, messageForCallers(cause));
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
  const known = knownCode(code);
  if (known !== 'OTHER' && known !== 'BAD_USER_INPUT') return error;
  Object.assign(error.extensions, { code: 'BAD_USER_INPUT' });
  error.extensions['http'] ??= { status: 400, spec: true };
  return error;
}

/** Returns what was thrown first: graphql-js and Yoga wrap it in GraphQL errors. */
function thrownFirst(error: unknown): unknown {
  let inner = error;
  while (inner instanceof GraphQLError && inner.originalError) inner = inner.originalError;
  return inner;
}

function isForCallers(cause: unknown): boolean {
  if (!(cause instanceof GraphQLError) || cause instanceof OperatorError) return false;
  // Yoga marks the errors that it makes of thrown strings and other values.
  return cause.extensions['unexpected'] !== true;
}

function isAbort(thrown: unknown): boolean {
  return (thrown as Error | undefined)?.name === 'AbortError';
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
  extensions: Record<string, unknown>,
): GraphQLError {
  const { nodes = null, path = null } = at ?? {};
  return new GraphQLError(message, { nodes, path, extensions });
}
