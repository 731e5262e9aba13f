import { randomUUID } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import { codedError, type ErrorCode } from '../../errors.ts';

/**
 * What an unexpected failure looks like from outside: nothing of it but an id, which is in the log too.
 * Errors that were made for callers, ours and the upstream's, are GraphQL errors all the way down and pass.
 */
export function maskUnexpected(log: Logger) {
  const logged = (cause: unknown): string => {
    const id = randomUUID();
    log.error({ err: cause, errorId: id }, 'unexpected error');
    return id;
  };
  return (error: unknown): Error => {
    if (isForCallers(error)) {
      const cause = unexpectedCause(error);
      return cause === undefined ? error : withId(error, logged(cause));
    }
    if (isAbort(error)) {
      log.debug('the caller left');
      return codedError('INTERNAL_SERVER_ERROR', 'The request was given up.');
    }
    if (isTooDeep(error)) {
      return codedError(
        'OPERATION_TOO_COMPLEX',
        'The operation is nested too deeply to be read. Split it into several.',
      );
    }
    const id = logged(error instanceof GraphQLError ? error.originalError : error);
    const masked = codedError(
      'INTERNAL_SERVER_ERROR',
      `Something went wrong inside the gateway. Tell its operator this id: ${id}`,
      { extensions: { id } },
    );
    if (!(error instanceof GraphQLError)) return masked;
    return new GraphQLError(masked.message, {
      ...(error.nodes && { nodes: error.nodes }),
      ...(error.path && { path: error.path }),
      extensions: masked.extensions,
    });
  };
}

/** A request that was refused before any field was executed: then the mistake is the caller's. */
export const codeRefusedRequests: Plugin = {
  onResultProcess({ result }) {
    for (const single of Array.isArray(result) ? result : [result]) {
      if (Symbol.asyncIterator in single || !single.errors || single.data) continue;
      for (const error of single.errors) {
        // What happened while a field was executed stands at that field.
        if ('data' in single && error.path) continue;
        const { code, http } = error.extensions;
        if (KNOWN_CODES.has(code)) continue;
        // Not a GraphQL request at all: then 400 is right, whatever the caller accepts.
        if (code === 'BAD_REQUEST' && http) http.spec = false;
        Object.assign(error.extensions, { code: 'BAD_USER_INPUT' });
        error.extensions.http ??= { status: 400, spec: true };
        // The parser's own words, with a piece of the body in them.
        delete error.extensions['originalError'];
      }
    }
  },
};

const KNOWN_CODES = new Set<unknown>([
  'INTERNAL_SERVER_ERROR',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'RATE_LIMITED',
  'OPERATION_TOO_COMPLEX',
]);

function isAbort(error: unknown): boolean {
  const cause = error instanceof GraphQLError ? error.originalError : error;
  return (cause as Error | undefined)?.name === 'AbortError';
}

/** The parser and the validation call themselves for each level of an operation. */
function isTooDeep(error: unknown): boolean {
  const cause = error instanceof GraphQLError ? error.originalError : error;
  return cause instanceof RangeError && cause.message.includes('call stack');
}

function isForCallers(error: unknown): error is GraphQLError {
  for (let inner: unknown = error; ;) {
    if (!(inner instanceof GraphQLError)) return false;
    if (!inner.originalError) return true;
    inner = inner.originalError;
  }
}

/** What ended a drain in the middle, where that was none of what is known to happen. */
function unexpectedCause(error: GraphQLError): unknown {
  let inner: Error = error;
  while (inner instanceof GraphQLError && inner.originalError) inner = inner.originalError;
  const { cause } = inner;
  const isOurs = error.extensions['code'] === ('DRAIN_INTERRUPTED' satisfies ErrorCode);
  return isOurs && cause instanceof Error && !isForCallers(cause) && !isAbort(cause)
    ? cause
    : undefined;
}

function withId({ message, nodes, path, extensions }: GraphQLError, id: string): GraphQLError {
  return new GraphQLError(`${message} Tell the operator of the gateway this id: ${id}`, {
    nodes: nodes ?? null,
    path: path ?? null,
    extensions: { ...extensions, id },
  });
}
