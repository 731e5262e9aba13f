import { GraphQLError, type ExecutionResult } from 'graphql';
import type { OutgoingRequest } from './outgoing-request.ts';

export type AskQuery = (query: OutgoingRequest) => Promise<ExecutionResult>;

export interface SharedQueries {
  /** The result is shared, so nobody may change its data. */
  readonly ask: AskQuery;
  /** From now on nobody joins what is under way; who waits for it still gets it. */
  readonly forget: () => void;
}

/**
 * Whoever asks what is being asked already waits for that answer. Each leaves by the own signal; when
 * nobody is left, the request is aborted.
 */
export function shareQueries(ask: AskQuery): SharedQueries {
  const underWay = new Map<string, SharedQuery>();
  return {
    ask: async (query) => {
      query.signal?.throwIfAborted();
      const key = `${query.priority} ${query.body}`;
      let shared = underWay.get(key);
      if (!shared) {
        shared = startShared(ask, query, () => {
          if (underWay.get(key) === shared) underWay.delete(key);
        });
        underWay.set(key, shared);
      }
      return shared.join(query);
    },
    forget: () => underWay.clear(),
  };
}

interface SharedQuery {
  join(joining: OutgoingRequest): Promise<ExecutionResult>;
}

/** @param onOver called when there is nothing to join any more: it was answered, or all have left */
function startShared(
  ask: AskQuery,
  { kind, field, body, priority, caller, cause }: OutgoingRequest,
  onOver: () => void,
): SharedQuery {
  const waiting = new Set<OutgoingRequest>();
  const allLeft = new AbortController();
  const onPressure = () => waiting.forEach((each) => each.onPressure?.());
  const asked = { kind, field, body, priority, caller, onPressure, cause, signal: allLeft.signal };
  const answer = ask(asked).finally(onOver);

  return {
    join: async (joining) => {
      const { signal } = joining;
      const left = Promise.withResolvers<never>();
      const leave = () => {
        waiting.delete(joining);
        if (waiting.size === 0) {
          onOver();
          allLeft.abort(signal?.reason);
        }
        left.reject(signal?.reason);
      };
      waiting.add(joining);
      signal?.addEventListener('abort', leave);
      try {
        return withOwnErrors(await Promise.race([answer, left.promise]));
      } catch (error) {
        throw error instanceof GraphQLError ? copyOf(error) : error;
      } finally {
        signal?.removeEventListener('abort', leave);
        waiting.delete(joining);
      }
    },
  };
}

/** On its way out an error is given a status and a code in its extensions, for one caller. */
function withOwnErrors(result: ExecutionResult): ExecutionResult {
  return result.errors ? { ...result, errors: result.errors.map(copyOf) } : result;
}

function copyOf({ message, path, originalError, extensions, cause }: GraphQLError): GraphQLError {
  const copy = new GraphQLError(message, {
    path: path ?? null,
    originalError: originalError ?? null,
    extensions: { ...extensions },
  });
  if (cause !== undefined) copy.cause = cause;
  return copy;
}
