import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import { GraphQLError } from 'graphql';
import { OperatorError } from '../errors.ts';
import { RequestMemory } from '../memory/byte-limit.ts';
import {
  keyOf,
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
import {
  unauthorized,
  type UpstreamAnswer,
  type UpstreamFailure,
  type UpstreamResult,
} from './read-response.ts';
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
  /** The number of root fields for queries. Default: 1. */
  readonly fields?: number;
  readonly tokens: BearerTokens<Token>;
  /** The memory in which requests count with their bodies. Default: no limit. */
  readonly memory?: RequestMemory;
  readonly telemetry?: UpstreamTelemetry;
}

/** The tokens that requests are sent with. */
export interface BearerTokens<
  Token extends { readonly value: string } = { readonly value: string },
> {
  /** The newest token, or a promise of the first one. */
  token(): Token | Promise<Token>;
  /**
   * Returns the token to send a request again with, or undefined if that would not help.
   *
   * @param detail of the 401
   * @param replays how often this request was already sent again: the tokens limit that
   */
  afterRefusal(refused: Token, detail: string, replays: number): Promise<Token | undefined>;
  /** Called for each result that was received with a token. */
  accepted(token: Token): void;
  /** Called when the service refused a token, and no other one helps. */
  refused(token: Token): void;
}

const MAX_ATTEMPTS = 4;
/**
 * How long a request may wait for its turn and be retried, ms. It ends at the latest after this and its own timeout.
 */
const PATIENCE_MS = 30_000;

/**
 * Creates an executor that attaches managed bearer tokens. A request shares the answer to an equal query in flight, or
 * waits for its turn (turns.ts) and is sent with the newest token (connections.ts); it is sent again if that or a newer
 * token may help. The circuit breaker (breaker.ts) refuses it before it waits, and again before it is sent.
 */
export function createServiceExecutor<Token extends { readonly value: string }>(
  parts: UpstreamParts<Token>,
): Upstream {
  const { concurrency, fields = 1, tokens, clock, telemetry = noTelemetry } = parts;
  const { memory = new RequestMemory(Infinity) } = parts;
  const turns = createTurns({ concurrency, fields, clock });
  const breaker = createBreaker(clock, telemetry);
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

  /** Counts the body as long as its sender needs it, even while it waits behind other requests of its operation. */
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

  /** Queries that are sent after a mutation never join one that may have been answered before it. */
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
    let before: UpstreamFailure | undefined;
    const giveUp = (failure: UpstreamFailure): UpstreamResult => {
      followed.gaveUp(failure);
      if (failure.result) return failure.result;
      throw errorOf(failure);
    };
    for (let attempt = 1; ; attempt += 1) {
      const refusal = followed.refusal();
      // The refusal says that nothing was sent, which would be false after an attempt.
      if (refusal && before) return giveUp(before);
      let answer: UpstreamResult | UpstreamFailure;
      try {
        answer = refusal ?? (await sendInTurn(request, sender, followed, until));
      } catch (error) {
        if (before && error instanceof NoTurn) return giveUp(before);
        throw error;
      }
      if (answer.kind === 'result') return answer;
      before = answer;
      const wait = waitAfter(answer, attempt);
      if (attempt >= attempts || clock.elapsed() + wait > until) return giveUp(answer);
      telemetry.retrying(sender.cause, answer.error.extensions['code'], attempt);
      await clock.sleep(wait, sender.signal);
    }
  }

  /** Sends a request whose failure says nothing new about the service, but whose answer shows that it works. */
  async function sendTrial(
    request: OutgoingRequest,
    sender: Sender,
    ms: number,
  ): Promise<UpstreamResult> {
    const signal = AbortSignal.any([sender.signal, AbortSignal.timeout(ms)]);
    const until = clock.elapsed() + ms;
    const answer = await sendInTurn(request, { ...sender, signal }, breaker.follow('trial'), until);
    if (answer.kind === 'result') return answer;
    throw errorOf(answer);
  }

  /**
   * Sends a request once, and again with another token if the service refuses this one. Mutations are sent again as
   * well: the service refuses a token before it executes anything. The request takes its token and starts its timeout
   * when its turn begins, because it is not sent before.
   *
   * @throws whatever the tokens throw
   */
  async function sendInTurn(
    request: OutgoingRequest,
    sender: Sender,
    followed: FollowedRequest,
    until: number,
  ): Promise<UpstreamResult | UpstreamFailure> {
    const turn = turns.take(request.field, sender, until);
    // Awaited only if it has to wait, as is the token: each await costs as much as the step.
    const endTurn = turn instanceof Promise ? await turn : turn;
    try {
      const first = tokens.token();
      let token = first instanceof Promise ? await first : first;
      for (let replays = 0; ; replays += 1) {
        const refusal = followed.begin();
        if (refusal) return refusal;
        let answer: UpstreamAnswer | undefined;
        try {
          if (request.kind === 'mutation') queries.stopJoining();
          answer = await connections.post(request, sender, token.value);
        } finally {
          followed.end(answer);
        }
        if (answer.kind === 'result') tokens.accepted(token);
        if (answer.kind !== 'unauthorized') return answer;
        const other =
          answer.status === 401
            ? await tokens.afterRefusal(token, answer.detail, replays)
            : undefined;
        if (!other) {
          tokens.refused(token);
          return unauthorized(answer);
        }
        token = other;
      }
    } finally {
      endTurn();
    }
  }
}

type SendQuery = (query: OutgoingRequest, sender: Sender) => Promise<UpstreamResult>;

/** Sends equal concurrent queries once. */
function shareQueries(send: SendQuery) {
  /** By body and key: an interactive query does not wait for the same query of a drain. */
  const inFlight = {
    interactive: new Map<string, Slot>(),
    drain: new Map<string, Slot>(),
  };

  return {
    /**
     * Joins the same query in flight, or sends this one. Each joined caller gets a separate result, with the reading
     * that all share.
     */
    send: (query: OutgoingRequest, sender: Sender): Promise<ServiceResult<unknown>> =>
      new Promise((resolve, reject) => {
        sender.signal.throwIfAborted();
        const queries = inFlight[sender.priority];
        const key = keyOf(query);
        let shared = queries.get(key)?.shared;
        if (!shared) {
          const slot: Slot = { shared: undefined };
          shared = slot.shared = new SharedQuery(() => {
            if (queries.get(key) === slot) queries.delete(key);
            slot.shared = undefined;
          });
          queries.set(key, slot);
          shared.send(send, query, sender);
        }
        shared.join(sender, resolve, reject);
      }),
    /** Queries that are sent later join none that is in flight now; those that have joined still get the result. */
    stopJoining: () => {
      inFlight.interactive.clear();
      inFlight.drain.clear();
    },
  };
}

/**
 * Emptied when the query is over. A map that often grows and shrinks leaves old tables behind, each with its former
 * entries and a reference to the next table: once one of them is in old space, all requests would stay in memory until
 * the next full collection.
 */
interface Slot {
  shared: SharedQuery | undefined;
}

/** One query, sent for all callers that join it. It is aborted when all of them have left. */
class SharedQuery {
  readonly #joined = new Set<Joined>();
  readonly #allLeft = new AbortController();
  readonly #onOver: () => void;

  /** @param onOver called when it can no longer be joined */
  constructor(onOver: () => void) {
    this.#onOver = onOver;
  }

  send(send: SendQuery, query: OutgoingRequest, { priority, caller, cause }: Sender): void {
    const all: Sender = {
      priority,
      caller,
      cause,
      signal: this.#allLeft.signal,
      onPressure: () => this.#joined.forEach(({ sender }) => sender.onPressure?.()),
    };
    send(query, all).then(
      ({ value, answer }) =>
        this.#settle(({ resolve }) => resolve(new ServiceResult(value, answer))),
      (error) =>
        this.#settle(({ reject }) => reject(error instanceof GraphQLError ? copyOf(error) : error)),
    );
  }

  join(sender: Sender, resolve: Joined['resolve'], reject: Joined['reject']): void {
    const joined: Joined = { sender, resolve, reject, leave: () => this.#leave(joined) };
    this.#joined.add(joined);
    sender.signal.addEventListener('abort', joined.leave);
  }

  #settle(deliver: (joined: Joined) => void): void {
    this.#onOver();
    for (const joined of this.#joined) {
      joined.sender.signal.removeEventListener('abort', joined.leave);
      deliver(joined);
    }
  }

  #leave(joined: Joined): void {
    const { reason } = joined.sender.signal;
    this.#joined.delete(joined);
    if (this.#joined.size === 0) {
      this.#onOver();
      this.#allLeft.abort(reason);
    }
    joined.reject(reason);
  }
}

interface Joined {
  readonly sender: Sender;
  readonly resolve: (result: ServiceResult<unknown>) => void;
  readonly reject: (reason: unknown) => void;
  readonly leave: () => void;
}

/** Copies an error for each caller: a status and a code are later written into its extensions. */
function copyOf(error: GraphQLError): GraphQLError {
  if (error instanceof OperatorError) return error.copy();
  const { message, path, originalError, extensions, cause } = error;
  const copy = new GraphQLError(message, {
    path: path ?? null,
    originalError: originalError ?? null,
    extensions: { ...extensions },
  });
  if (cause !== undefined) copy.cause = cause;
  return copy;
}

const FIRST_WAIT_MS = 100;
/** If the wait would be longer, the error is reported with the time after which the caller can try again. */
const LONGEST_WAIT_MS = 10_000;

/**
 * Returns how long to wait before a request is sent again, ms; Infinity to give up. It is sent again after failures
 * that may be temporary: no connection, 5xx, and 429 unless its Retry-After is longer than 10 s. Up to half of the wait
 * is added at random, as long as it does not exceed 10 s.
 *
 * @param attempt how often it was sent so far
 */
function waitAfter({ isTemporary, retryAfterMs = 0 }: UpstreamFailure, attempt: number): number {
  const wait = Math.max(retryAfterMs, FIRST_WAIT_MS * 2 ** (attempt - 1));
  if (!isTemporary || wait > LONGEST_WAIT_MS) return Infinity;
  return Math.min(wait * (1 + Math.random() / 2), LONGEST_WAIT_MS);
}

/** Adds the service's id of the request, if callers may see it: the service's support finds the request by it. */
function errorOf({ error, requestId }: UpstreamFailure): GraphQLError {
  if (requestId !== undefined) error.extensions['serviceRequestId'] = requestId;
  return error;
}
