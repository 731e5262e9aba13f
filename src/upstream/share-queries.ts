import { GraphQLError } from 'graphql';
import type { OutgoingRequest } from './outgoing-request.ts';
import type { UpstreamResult } from './read-response.ts';

export type AskQuery = (query: OutgoingRequest) => Promise<UpstreamResult>;

export interface SharedQueries {
  /** The result is shared, so nobody may change it. */
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
      query.signal.throwIfAborted();
      const key = `${query.priority} ${query.body}${query.key ?? ''}`;
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
  join(joining: OutgoingRequest): Promise<UpstreamResult>;
}

/** @param onOver called when there is nothing to join any more: it was answered, or all have left */
function startShared(ask: AskQuery, query: OutgoingRequest, onOver: () => void): SharedQuery {
  const waiting = new Set<OutgoingRequest>();
  const allLeft = new AbortController();
  const onPressure = () => waiting.forEach((each) => each.onPressure?.());
  const answer = ask({ ...query, onPressure, signal: allLeft.signal }).finally(onOver);

  return {
    join: async (joining) => {
      const { signal } = joining;
      const left = Promise.withResolvers<never>();
      const leave = () => {
        waiting.delete(joining);
        if (waiting.size === 0) {
          onOver();
          allLeft.abort(signal.reason);
        }
        left.reject(signal.reason);
      };
      waiting.add(joining);
      signal.addEventListener('abort', leave);
      try {
        return await Promise.race([answer, left.promise]);
      } catch (error) {
        throw error instanceof GraphQLError ? copyOf(error) : error;
      } finally {
        signal.removeEventListener('abort', leave);
        waiting.delete(joining);
      }
    },
  };
}

/** On its way out an error is given a status and a code in its extensions, for one caller. */
function copyOf({ message, path, originalError, extensions, cause }: GraphQLError): GraphQLError {
  const copy = new GraphQLError(message, {
    path: path ?? null,
    originalError: originalError ?? null,
    extensions: { ...extensions },
  });
  if (cause !== undefined) copy.cause = cause;
  return copy;
}
