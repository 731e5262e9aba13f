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
import { accepted } from './formats.ts';
import { httpOf, shownError, shownExtensions } from './results.ts';
import type { Exchange } from './exchange.ts';
import { JSON_TYPE, type Reply } from './reply.ts';

/** A request, as far as its errors need it: callers report its id to the operator. */
type Failing = Pick<Exchange, 'requestId'>;

/** Replaces an unexpected error by one for callers. @param exchange whose answer the error is part of */
export type MaskFor = (error: unknown, exchange: Failing) => GraphQLError;

export type ErrorPolicy = ReturnType<typeof createErrorPolicy>;

/** Decides how errors reach callers. Refusals have the status that `accept` requires (GraphQL over HTTP, 6.4). */
export function createErrorPolicy(log: Logger) {
  const mask = maskUnexpected(log);

  const refuse = (
    exchange: Exchange,
    thrown: unknown,
    extensions?: ExecutionResult['extensions'],
  ): Reply => {
    // A thousand callers may leave at once.
    if (exchange.hasLeft && isAbort(thrown)) return EMPTY_REPLY;
    const errors = errorsThrown(thrown).map((error) => coded(mask(error, exchange)));
    exchange.notes.outcome = knownCode(errors[0]?.extensions['code']);
    const { json } = accepted(exchange.header('accept'));
    const refused = { errors, ...(extensions && { extensions }) };
    const { status, headers } = httpOf(refused, json === JSON_TYPE);
    const body = JSON.stringify({
      errors: errors.map(shownError),
      ...(extensions && shownExtensions(extensions)),
    });
    return { status, headers: { ...headers, ...NOT_KEPT, 'content-type': json }, body };
  };
  return {
    /**
     * Replaces an unexpected error with one that shows only the id of the request, which is logged with the error.
     * Replaces the message of an error for the operator with one for callers, with the same id.
     */
    mask,
    /** Answers an error that a stage threw. `extensions` are those of the answer, which plugins may have added. */
    refuse,
    /**
     * Ends an answer that has begun, or that could not even be refused. Logs its failure, because nothing else could
     * report it.
     *
     * @returns what a reader through `fetch` gets instead of the error
     */
    cutOff: (exchange: Exchange, error: unknown): Error => {
      const failure = exchange.hasLeft ? error : new Error(CUT_OFF, { cause: error });
      const masked = mask(failure, exchange);
      exchange.cutOff();
      return masked;
    },
  };
}

const CUT_OFF = 'An answer was cut off, because the rest of it could not be written.';

/** A cache would repeat a refusal to callers that may have the answer. */
const NOT_KEPT = { 'cache-control': 'no-store' };

const EMPTY_REPLY: Reply = { status: 500, headers: {} };

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

const UNAVAILABLE = 'the recruiting service was reported to a caller as temporarily unavailable';

function maskUnexpected(log: Logger): MaskFor {
  const reported = new WeakSet<Failing>();
  /** Logs the message for the operator, in one line of a request, and gives callers the id of the request. */
  const maskOperatorError = (error: GraphQLError, origin: OperatorError, exchange: Failing) => {
    const { requestId } = exchange;
    if (!reported.has(exchange)) {
      reported.add(exchange);
      log[origin.needsOperator ? 'error' : 'warn']({ requestId, err: origin }, UNAVAILABLE);
    }
    const forCaller = error.message === origin.message ? messageForCallers(origin) : undefined;
    return withId(error, requestId, forCaller);
  };
  const logged = (cause: unknown, { requestId }: Failing): string => {
    log.error({ requestId, err: cause }, 'unexpected error');
    return requestId;
  };
  return (error, exchange) => {
    if (isForCallers(error)) {
      const cause = causeOf(error);
      if (cause instanceof OperatorError) return maskOperatorError(error, cause, exchange);
      const isExpected = !(cause instanceof Error) || isForCallers(cause) || isAbort(cause);
      return isExpected ? error : withId(error, logged(cause, exchange));
    }
    if (isAbort(error)) return codedError('INTERNAL_SERVER_ERROR', CANCELLED);
    const cause = error instanceof GraphQLError ? (error.originalError ?? error) : error;
    const id = logged(cause, exchange);
    const masked = codedError(
      'INTERNAL_SERVER_ERROR',
      `An unexpected error happened in the gateway. Report this id to its operator: ${id}`,
      { extensions: { id } },
    );
    if (!(error instanceof GraphQLError)) return masked;
    return withMessage(error, masked.message, masked.extensions);
  };
}

const CANCELLED = 'The request was cancelled by its caller.';

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
  error: GraphQLError,
  message: string,
  extensions = error.extensions,
): GraphQLError {
  const { nodes, path } = error;
  return new GraphQLError(message, { nodes: nodes ?? null, path: path ?? null, extensions });
}
