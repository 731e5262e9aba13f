import type { ExecutionRequest } from '@graphql-tools/utils';
import { Kind, OperationTypeNode, type DocumentNode, type ExecutionResult } from 'graphql';
import { Pool, ProxyAgent } from 'undici';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { printDocument } from '../print-document.ts';
import { createBreaker } from './breaker.ts';
import { readResponse, type UpstreamAnswer } from './read-response.ts';
import { retrying, type AuthorizedAnswer } from './retrying.ts';
import { shareQueries, type OutgoingRequest } from './share-queries.ts';
import { transportError } from './transport-error.ts';
import { createTurns, type Priority, type TurnsLoad } from './turns.ts';
import { outcomeOf, unwatched, type SentRequest, type UpstreamWatch } from './upstream-watch.ts';

/** The recruiting service's GraphQL endpoint, as an executor for graphql-tools. */
export interface Upstream {
  /**
   * Queries that are alike share one request, and its result: nobody may change that.
   *
   * @throws coded errors, and the abort reason of the caller's signal
   */
  execute(request: ExecutionRequest): Promise<ExecutionResult>;
  readonly load: TurnsLoad;
  close(): Promise<void>;
}

/** Whose rights a request goes out with; the tokens stage implements it. */
export interface BearerTokens<
  Token extends { readonly value: string } = { readonly value: string },
> {
  accessToken(): Promise<Token>;
  afterRefusal(refused: Token, detail: string): Promise<Token | undefined>;
  accepted(token: Token): void;
}

/** What the executor reads of the GraphQL context. */
export interface UpstreamContext {
  /** The caller left: what only that caller waited for is aborted. */
  readonly signal?: AbortSignal;
  /** Interactive unless told. */
  readonly priority?: Priority;
  /** Called for each 429 and 5xx, also when the request is then sent again: a drain had better ask for less at a time. */
  readonly onPressure?: () => void;
  /** Names to the watch for whom this is asked. Nothing here looks into it. */
  readonly cause?: unknown;
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
  /** How long a request may wait for its turn, and be tried again, ms. 30 s unless told. */
  patienceMs?: number;
  tokens: BearerTokens<Token>;
  clock: Clock;
  watch?: UpstreamWatch;
}

/** So long a request waits for its turn, and is tried again: with its own time on top it is the longest that anybody waits. */
const PATIENCE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** One for a token that others renewed meanwhile, one for a renewal of our own. */
const MAX_REPLAYS = 2;

export function createUpstream<Token extends { readonly value: string }>(
  parts: UpstreamParts<Token>,
): Upstream {
  const { baseUrl, agent, proxy, concurrency, timeoutMs, tokens, clock, watch = unwatched } = parts;
  const { fields = 1, patienceMs = PATIENCE_MS } = parts;
  const url = new URL(`${baseUrl}/graphql`);
  const turns = createTurns({ concurrency, fields, clock });
  const breaker = createBreaker({ clock, onChange: watch.breaker });
  const options = {
    connections: concurrency,
    pipelining: 1,
    allowH2: false,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) },
  };
  const pool =
    proxy === undefined
      ? new Pool(url.origin, options)
      : new ProxyAgent({ ...options, uri: proxy, proxyTunnel: true });

  const queries = shareQueries((query) => {
    const until = clock.elapsed() + patienceMs;
    const gaveUp = (answer: AuthorizedAnswer) => breaker.gaveUp(query, answer);
    const { signal } = query;
    const onRetry = watch.again(query.cause);
    return retrying(() => sendInTurn(query, until), { clock, signal, until, gaveUp, onRetry });
  });

  return {
    execute: (request) => {
      // Only what is surely a query may be shared, or sent twice.
      return request.operationType === OperationTypeNode.QUERY
        ? queries.ask(outgoing(request))
        : mutate(outgoing(request));
    },
    get load() {
      return turns.load;
    },
    close: () => pool.destroy(),
  };

  /** What is asked after a mutation never joins what may have been answered before it. */
  async function mutate(mutation: OutgoingRequest): Promise<ExecutionResult> {
    const { signal } = mutation;
    const until = clock.elapsed() + patienceMs;
    const send = () => sendInTurn(mutation, until, queries.forget);
    queries.forget();
    try {
      const gaveUp = (answer: AuthorizedAnswer) => breaker.gaveUp(mutation, answer);
      return await retrying(send, { clock, signal, until, gaveUp, attempts: 1 });
    } finally {
      queries.forget();
    }
  }

  /** Sent until then, or not at all. */
  async function sendInTurn(
    request: OutgoingRequest,
    until: number,
    beforeSending?: () => void,
  ): Promise<AuthorizedAnswer> {
    const refused = breaker.refusalOf(request);
    if (refused) return refused;
    return turns.take(() => sendAuthorized(request, beforeSending), { ...request, until });
  }

  /**
   * The time-out and the token of a request are taken with its turn: what waits was not even sent. A 401 is
   * refused before execution, so mutations are replayed as well.
   */
  async function sendAuthorized(
    request: OutgoingRequest,
    beforeSending = () => {},
  ): Promise<AuthorizedAnswer> {
    let token = await tokens.accessToken();
    for (let replays = 0; ; replays += 1) {
      beforeSending();
      const answer = await watched(request, token.value);
      if (answer.kind !== 'unauthorized') {
        if (answer.kind === 'result') tokens.accepted(token);
        return answer;
      }
      const next =
        answer.status === 401 && replays < MAX_REPLAYS
          ? await tokens.afterRefusal(token, answer.detail)
          : undefined;
      if (!next) throw unauthorized(answer);
      token = next;
    }
  }

  async function watched(request: OutgoingRequest, token: string): Promise<UpstreamAnswer> {
    const sent = watch.sending(request.cause);
    try {
      const answer = await post(request, token, sent);
      sent.ended(outcomeOf(answer));
      return answer;
    } catch (error) {
      sent.ended('left');
      throw error;
    }
  }

  async function post(
    request: OutgoingRequest,
    token: string,
    sent: SentRequest,
  ): Promise<UpstreamAnswer> {
    const { body, signal, onPressure } = request;
    // It may have been found to be down since the request began to wait.
    const refused = breaker.refusalOf(request);
    if (refused) return refused;
    const exchange = breaker.begin(request);
    const deadline = AbortSignal.timeout(timeoutMs);
    try {
      const response = await pool.request({
        origin: url.origin,
        method: 'POST',
        path: url.pathname,
        headers: {
          ...sent.headers,
          'content-type': 'application/json',
          accept: 'application/json',
          // Without it any coding would be allowed (RFC 9110, 12.5.3).
          'accept-encoding': 'identity',
          authorization: `Bearer ${token}`,
          'api-user-agent': agent,
        },
        body,
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      });
      sent.answered(response.statusCode);
      if (response.statusCode === 429 || response.statusCode >= 500) onPressure?.();
      const answer = await readResponse(response, { token, now: clock.now });
      exchange.ended(answer);
      return answer;
    } catch (error) {
      if (signal?.aborted) {
        exchange.left();
        throw signal.reason;
      }
      const answer = transportError(error, timeoutMs);
      exchange.ended(answer);
      return answer;
    }
  }
}

function outgoing(request: ExecutionRequest): OutgoingRequest {
  const { document, variables, operationName } = request;
  const context = request.context as UpstreamContext | undefined;
  return {
    kind: request.operationType === OperationTypeNode.QUERY ? 'query' : 'mutation',
    field: fieldOf(document),
    body: JSON.stringify({ query: printDocument(document), variables, operationName }),
    priority: context?.priority ?? 'interactive',
    signal: context?.signal,
    onPressure: context?.onPressure,
    cause: context?.cause,
  };
}

function fieldOf({ definitions }: DocumentNode): string {
  for (const definition of definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const [selection] = definition.selectionSet.selections;
    if (selection?.kind === Kind.FIELD) return selection.name.value;
  }
  return '';
}

function unauthorized({ status, detail }: { status: number; detail: string }) {
  if (status === 401 && detail === 'token_expired') {
    return codedError(
      'UPSTREAM_UNAUTHORIZED',
      'The recruiting service calls an access token expired that it has just given out, and renewing it again would not end: ' +
        'its clock, or the life that it names for its tokens, is wrong. Tell its support; the next renewal comes by itself.',
    );
  }
  return codedError(
    'UPSTREAM_UNAUTHORIZED',
    `The recruiting service refuses the gateway's access token (${status}) although it has not expired: ` +
      'the administrator who made it was probably demoted or blocked, or the token was revoked. ' +
      'Have an administrator check the account, and make a new token if need be.',
  );
}
