import { authorize, type BearerTokens } from './authorize.ts';
import { createBreaker, type FollowedRequest } from './breaker.ts';
import { openConnections, type ConnectionsParts } from './connections.ts';
import type { OutgoingRequest, UpstreamResult } from './request.ts';
import { retry } from './retry.ts';
import { shareQueries } from './share-queries.ts';
import { noTelemetry, type UpstreamTelemetry } from './telemetry.ts';
import { createTurns, type TurnsLoad } from './turns.ts';

/** The recruiting service's GraphQL endpoint. */
export interface Upstream {
  /**
   * Resolves to what the request's reader made of the answer. Callers of the same query share it: it must not be
   * changed.
   *
   * @throws coded errors, and the abort reason of the request's signal
   */
  send<T>(request: OutgoingRequest<T>): Promise<T>;
  readonly load: TurnsLoad;
  close(): Promise<void>;
}

export interface UpstreamParts<Token extends { readonly value: string }> extends Omit<
  ConnectionsParts,
  'telemetry'
> {
  /** How many root fields there are for queries. Default: 1. */
  readonly fields?: number;
  readonly tokens: BearerTokens<Token>;
  readonly telemetry?: UpstreamTelemetry;
}

const MAX_ATTEMPTS = 4;
/** How long a request may wait for its turn and be sent again. It ends after this and its own timeout at the latest. */
const PATIENCE_MS = 30_000;

/**
 * The way of a request, one file for each step: it shares the request of an equal query in flight, is sent again where
 * that may help, waits for its turn, is authorized with the newest token, and is sent. The circuit breaker refuses it
 * before it waits, and again before it is sent.
 */
export function createUpstream<Token extends { readonly value: string }>(
  parts: UpstreamParts<Token>,
): Upstream {
  const { concurrency, fields = 1, tokens, clock, telemetry = noTelemetry } = parts;
  const turns = createTurns({ concurrency, fields, clock });
  const breaker = createBreaker({ clock, onChange: telemetry.breakerChanged });
  const connections = openConnections({ ...parts, telemetry });
  const queries = shareQueries((query) => sendWithRetries(query, MAX_ATTEMPTS));

  return {
    send: <T>(request: OutgoingRequest<T>) =>
      (request.kind === 'query' ? queries.send(request) : mutate(request)) as Promise<T>,
    get load() {
      return turns.load;
    },
    close: connections.close,
  };

  /** A query that is sent after a mutation never joins one that may have been answered before it. */
  async function mutate(mutation: OutgoingRequest): Promise<unknown> {
    queries.stopJoining();
    try {
      return (await sendWithRetries(mutation, 1)).value;
    } finally {
      queries.stopJoining();
    }
  }

  function sendWithRetries(request: OutgoingRequest, attempts: number): Promise<UpstreamResult> {
    const { kind, signal, cause } = request;
    const until = clock.elapsed() + PATIENCE_MS;
    const followed = breaker.follow(kind);
    return retry(() => sendInTurn(request, followed, until), {
      clock,
      signal,
      attempts,
      until,
      onRetry: (code, attempt) => telemetry.retrying(cause, code, attempt),
      onGiveUp: followed.gaveUp,
    });
  }

  /** The token and the timeout of a request begin with its turn: before that it was not sent. */
  async function sendInTurn(request: OutgoingRequest, followed: FollowedRequest, until: number) {
    const refusal = followed.refusal();
    if (refusal) return refusal;
    const endTurn = await turns.take(request, until);
    try {
      return await authorize(tokens, (token) => followed.attempt(() => post(request, token)));
    } finally {
      endTurn();
    }
  }

  function post(request: OutgoingRequest, token: string) {
    if (request.kind === 'mutation') queries.stopJoining();
    return connections.post(request, token);
  }
}
