import type { ExecutionRequest } from '@graphql-tools/utils';
import { OperationTypeNode, type ExecutionResult } from 'graphql';
import PQueue from 'p-queue';
import type { Logger } from 'pino';
import { Pool, ProxyAgent } from 'undici';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { printDocument } from '../print-document.ts';
import { readResponse, type UpstreamAnswer } from './read-response.ts';
import { retrying, type AuthorizedAnswer } from './retrying.ts';
import { transportError } from './transport-error.ts';

/** The recruiting service's GraphQL endpoint, as an executor for graphql-tools. */
export interface Upstream {
  /** @throws coded errors, and the abort reason of the caller's signal */
  execute(request: ExecutionRequest): Promise<ExecutionResult>;
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
}

export interface UpstreamParts<Token extends { readonly value: string }> {
  baseUrl: string;
  /** Value of `Api-User-Agent`. */
  agent: string;
  /** URL of the proxy to go through, if there is one. */
  proxy?: string | undefined;
  /** Requests in flight at a time, each on a connection of its own. */
  concurrency: number;
  /** Time for one request from when it is sent, ms. */
  timeoutMs: number;
  tokens: BearerTokens<Token>;
  clock: Clock;
  log: Logger;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** One for a token that others renewed meanwhile, one for a renewal of our own. */
const MAX_REPLAYS = 2;

export function createUpstream<Token extends { readonly value: string }>(
  parts: UpstreamParts<Token>,
): Upstream {
  const { baseUrl, agent, proxy, concurrency, timeoutMs, tokens, clock, log } = parts;
  const url = new URL(`${baseUrl}/graphql`);
  const queue = new PQueue({ concurrency });
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

  return {
    execute: (request) => {
      const signal = (request.context as UpstreamContext | undefined)?.signal;
      const body = bodyOf(request);
      // The time-out and the token of a request are taken with its turn: what waits was not even sent.
      const send = () => queue.add(() => sendAuthorized(body, signal), signal ? { signal } : {});
      // Only what is surely a query may be sent twice.
      return request.operationType === OperationTypeNode.QUERY
        ? retrying(send, { clock, log, signal })
        : retrying(send, { clock, log, signal, attempts: 1 });
    },
    close: () => pool.destroy(),
  };

  /** A 401 is refused before execution, so mutations are replayed as well. */
  async function sendAuthorized(body: string, signal?: AbortSignal): Promise<AuthorizedAnswer> {
    let token = await tokens.accessToken();
    for (let replays = 0; ; replays += 1) {
      const answer = await post(body, token.value, signal);
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

  async function post(body: string, token: string, signal?: AbortSignal): Promise<UpstreamAnswer> {
    const deadline = AbortSignal.timeout(timeoutMs);
    try {
      const response = await pool.request({
        origin: url.origin,
        method: 'POST',
        path: url.pathname,
        headers: {
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
      return await readResponse(response, clock.now);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      return transportError(error, timeoutMs);
    }
  }
}

function bodyOf({ document, variables, operationName }: ExecutionRequest): string {
  return JSON.stringify({ query: printDocument(document), variables, operationName });
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
