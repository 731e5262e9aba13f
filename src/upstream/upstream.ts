import type { Clock } from '../clock.ts';
import { authorizing, type AuthorizedAnswer, type BearerTokens } from './authorizing.ts';
import { createBreaker } from './breaker.ts';
import { openConnections } from './connections.ts';
import type { OutgoingRequest } from './outgoing-request.ts';
import type { UpstreamResult } from './read-response.ts';
import { retrying } from './retrying.ts';
import { shareQueries } from './share-queries.ts';
import { createTurns, type TurnsLoad } from './turns.ts';
import { unwatched, type UpstreamWatch } from './upstream-watch.ts';

/** The recruiting service's GraphQL endpoint. */
export interface Upstream {
  /**
   * Queries that are alike share one request, and what is read of its answer: nobody may change that.
   *
   * @throws coded errors, and the abort reason of the caller's signal
   */
  send<T>(request: OutgoingRequest<T>): Promise<T>;
  readonly load: TurnsLoad;
  close(): Promise<void>;
}

export interface UpstreamParts<Token extends { readonly value: string }> {
  baseUrl: string;
  /** Value of `Api-User-Agent`. */
  agent: string;
  /** URL of the proxy to go through, if there is one. */
  proxy?: string | undefined;
  /** Requests in flight at a time, each on a connection of its own. */
  concurrency: number;
  /** How many fields the root of its queries has. 1 unless told. */
  fields?: number;
  /** Time for one request from when it is sent, ms. */
  timeoutMs: number;
  tokens: BearerTokens<Token>;
  clock: Clock;
  watch?: UpstreamWatch;
}

/** So long a request waits for its turn, and is tried again: with its own time on top it is the longest that anybody waits. */
const PATIENCE_MS = 30_000;

/**
 * The way of a request: it joins one that is alike, is sent again where that may help, waits for its turn, is given
 * a token, and goes out.
 */
export function createUpstream<Token extends { readonly value: string }>(
  parts: UpstreamParts<Token>,
): Upstream {
  const { concurrency, fields = 1, tokens, clock, watch = unwatched } = parts;
  const turns = createTurns({ concurrency, fields, clock });
  const breaker = createBreaker({ clock, onChange: watch.breaker });
  const connections = openConnections({ ...parts, breaker, watch });

  const queries = shareQueries((query) => {
    const until = clock.elapsed() + PATIENCE_MS;
    const gaveUp = (answer: AuthorizedAnswer) => breaker.gaveUp(query, answer);
    const { signal } = query;
    const onRetry = watch.again(query.cause);
    return retrying(() => sendInTurn(query, until), { clock, signal, until, gaveUp, onRetry });
  });

  return {
    send: async <T>(request: OutgoingRequest<T>) => {
      const { value } = await (request.kind === 'query' ? queries.ask(request) : mutate(request));
      return value as T;
    },
    get load() {
      return turns.load;
    },
    close: connections.close,
  };

  /** What is asked after a mutation never joins what may have been answered before it. */
  async function mutate(mutation: OutgoingRequest): Promise<UpstreamResult> {
    const { signal } = mutation;
    const until = clock.elapsed() + PATIENCE_MS;
    const send = () => sendInTurn(mutation, until, queries.forget);
    queries.forget();
    try {
      const gaveUp = (answer: AuthorizedAnswer) => breaker.gaveUp(mutation, answer);
      return await retrying(send, { clock, signal, until, gaveUp, attempts: 1 });
    } finally {
      queries.forget();
    }
  }

  /**
   * Sent until then, or not at all. The time-out and the token of a request are taken with its turn: what waits was
   * not even sent.
   */
  async function sendInTurn(
    request: OutgoingRequest,
    until: number,
    beforeSending = () => {},
  ): Promise<AuthorizedAnswer> {
    const refused = breaker.refusalOf(request);
    if (refused) return refused;
    const send = (token: string) => {
      beforeSending();
      return connections.post(request, token);
    };
    const { field, caller, signal, priority } = request;
    return turns.take(() => authorizing(tokens, send), { field, caller, signal, priority, until });
  }
}
