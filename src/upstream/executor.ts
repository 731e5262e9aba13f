import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import { GraphQLError } from 'graphql';
import { RequestMemory } from '../memory/byte-limit.ts';
import {
  printedRequest,
  ServiceRequest,
  ServiceResult,
  type OutgoingRequest,
  type Sender,
  type ServiceExecutor,
} from '../service/request.ts';
import { createBreaker, type FollowedRequest } from './breaker.ts';
import {
  noTelemetry,
  openConnections,
  type ConnectionsParts,
  type UpstreamTelemetry,
} from './connections.ts';
import type { UpstreamAnswer, UpstreamResult } from './read-response.ts';
import {
  failureOf,
  newerToken,
  type AuthorizedAnswer,
  type BearerTokens,
  type Unanswered,
} from './retry.ts';
import { shareQueries } from './share-queries.ts';
import { createTurns, NoTurn, type TurnsLoad } from './turns.ts';

/** The recruiting service's GraphQL endpoint. */
export interface Upstream {
  /** The `Executor` of graphql-tools through which every request to the service goes. */
  readonly execute: ServiceExecutor;
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
  /** Requests count in it with their bodies. Default: no limit. */
  readonly memory?: RequestMemory;
  readonly telemetry?: UpstreamTelemetry;
}

const MAX_ATTEMPTS = 4;
/** How long a request may wait for its turn and be sent again. It ends after this and its own timeout at the latest. */
const PATIENCE_MS = 30_000;

/**
 * Creates an executor that attaches managed bearer tokens. The steps of a request are here, and the rules of each step
 * in another file: it shares the request of an equal query in flight (share-queries.ts), waits for its turn (turns.ts),
 * is sent with the newest token (connections.ts), and again where that or a newer token may help (retry.ts). The circuit
 * breaker (breaker.ts) refuses it before it waits, and again before it is sent.
 */
export function createServiceExecutor<Token extends { readonly value: string }>(
  parts: UpstreamParts<Token>,
): Upstream {
  const { concurrency, fields = 1, tokens, clock, telemetry = noTelemetry } = parts;
  const { memory = new RequestMemory(Infinity) } = parts;
  const turns = createTurns({ concurrency, fields, clock });
  const breaker = createBreaker(clock, telemetry.breakerChanged);
  const connections = openConnections({ ...parts, telemetry });
  const queries = shareQueries((query, sender) =>
    query.trialMs === undefined
      ? sendWithRetries(query, sender, MAX_ATTEMPTS)
      : sendTrial(query, sender, query.trialMs),
  );

  return {
    execute: ((request: ExecutionRequest) =>
      request instanceof ServiceRequest
        ? send(request)
        : executeGeneral(request)) as ServiceExecutor,
    get load() {
      return turns.load;
    },
    close: connections.close,
  };

  /** Counts the body as long as its sender needs it: while it waits behind others of its operation, too. */
  async function send({
    outgoing,
    context: sender,
  }: ServiceRequest<unknown>): Promise<ServiceResult<unknown>> {
    const { slots, signal, priority } = sender;
    const bytes = Buffer.byteLength(outgoing.body);
    const sendNow = () =>
      outgoing.kind === 'query' ? queries.send(outgoing, sender) : mutate(outgoing, sender);
    try {
      // A walk has only a few requests at a time, and may have begun long ago.
      if (!memory.add(bytes, bytes) && priority === 'interactive') throw memory.refusal();
      return await (slots ? slots.run(sendNow, { signal }) : sendNow());
    } finally {
      memory.remove(bytes);
    }
  }

  async function executeGeneral(request: ExecutionRequest): Promise<ExecutionResult> {
    try {
      return (await send(printedRequest(request))).plain();
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  }

  /** A query that is sent after a mutation never joins one that may have been answered before it. */
  async function mutate(
    mutation: OutgoingRequest,
    sender: Sender,
  ): Promise<ServiceResult<unknown>> {
    queries.stopJoining();
    try {
      const { value, answer } = await sendWithRetries(mutation, sender, 1);
      return new ServiceResult(value, answer);
    } finally {
      queries.stopJoining();
    }
  }

  /** Sends a request until it is answered, or sending it again cannot help. */
  async function sendWithRetries(
    request: OutgoingRequest,
    sender: Sender,
    attempts: number,
  ): Promise<UpstreamResult> {
    const until = clock.elapsed() + PATIENCE_MS;
    const followed = breaker.follow(request.kind);
    let before: { readonly answer: Unanswered; readonly error: GraphQLError } | undefined;
    const giveUp = ({ answer, error }: NonNullable<typeof before>): UpstreamResult => {
      followed.gaveUp(answer);
      if (answer.kind === 'failure' && answer.result) return answer.result;
      throw error;
    };
    for (let attempt = 1; ; attempt += 1) {
      const refusal = followed.refusal();
      // That nothing was sent would not be true of the attempts before.
      if (refusal && before) return giveUp(before);
      let answer: AuthorizedAnswer;
      try {
        answer = refusal ?? (await sendInTurn(request, sender, followed, until));
      } catch (error) {
        if (before && error instanceof NoTurn) return giveUp(before);
        throw error;
      }
      if (answer.kind === 'result') return answer;
      const { error, wait } = failureOf(answer, attempt);
      before = { answer, error };
      if (attempt >= attempts || clock.elapsed() + wait > until) return giveUp(before);
      telemetry.retrying(sender.cause, error.extensions['code'], attempt);
      await clock.sleep(wait, sender.signal);
    }
  }

  /** Its failures say nothing about the service that the request before did not say; its answer does. */
  async function sendTrial(
    request: OutgoingRequest,
    sender: Sender,
    ms: number,
  ): Promise<UpstreamResult> {
    const signal = AbortSignal.any([sender.signal, AbortSignal.timeout(ms)]);
    const until = clock.elapsed() + ms;
    const answer = await sendInTurn(request, { ...sender, signal }, breaker.follow('trial'), until);
    if (answer.kind === 'result') return answer;
    throw failureOf(answer, 1).error;
  }

  /**
   * Sends a request once, and again with a newer token where the service refuses this one. Its token and its timeout
   * begin with its turn: before that it was not sent.
   */
  async function sendInTurn(
    request: OutgoingRequest,
    sender: Sender,
    followed: FollowedRequest,
    until: number,
  ): Promise<AuthorizedAnswer> {
    const turn = turns.take(request.field, sender, until);
    // Awaited only if it has to wait, as is the token: each await costs as much as the step.
    const endTurn = turn instanceof Promise ? await turn : turn;
    try {
      const first = tokens.accessToken();
      let token = first instanceof Promise ? await first : first;
      for (let replays = 0; ; replays += 1) {
        const refusal = followed.begin();
        if (refusal) return refusal;
        let answer: UpstreamAnswer | undefined;
        try {
          answer = await post(request, sender, token.value);
        } finally {
          followed.end(answer);
        }
        if (answer.kind === 'result') tokens.accepted(token);
        if (answer.kind !== 'unauthorized') return answer;
        token = await newerToken(tokens, token, answer, replays);
      }
    } finally {
      endTurn();
    }
  }

  function post(request: OutgoingRequest, sender: Sender, token: string): Promise<UpstreamAnswer> {
    if (request.kind === 'mutation') queries.stopJoining();
    return connections.post(request, sender, token);
  }
}
