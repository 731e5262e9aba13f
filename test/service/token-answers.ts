import type { ServerResponse } from 'node:http';
import type { Answer, Listener } from '../../sandbox/http.ts';
import { answerGrant, formOf, type TokenOffice } from '../../sandbox/tokens.ts';

/** A request to /oauth/token, and its outcome so far. */
export interface Exchange {
  readonly refreshToken: string;
  /**
   * - `not-processed`: the token was not looked at.
   * - `invalid-grant`: the token was not valid.
   * - `too-early`: the token is valid, and was refused because the access token has not expired.
   * - `spent-in-silence`: the token is spent, and its client does not have the whole new pair.
   * - `answered`: the token is spent, and the whole new pair was handed to the socket.
   */
  outcome: 'answered' | 'spent-in-silence' | 'invalid-grant' | 'too-early' | 'not-processed';
}

interface RawAnswer {
  readonly status: number;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * What goes wrong with an answer of /oauth/token.
 * - `drop-before`: the connection is cut, with nothing processed.
 * - `drop-after`: the token is exchanged, and the connection cut before any byte of an answer.
 * - an object: this answer instead, with nothing processed; JSON unless its headers say otherwise.
 * - a function: the token is exchanged, and the JSON of the new pair goes out as the function writes it; a refusal
 *   stays as it is.
 */
export type TokenFault = 'drop-before' | 'drop-after' | RawAnswer | ((json: string) => RawAnswer);

interface Hold {
  readonly when: 'before' | 'after';
  readonly arrived: PromiseWithResolvers<void>;
  readonly left: PromiseWithResolvers<void>;
  readonly released: PromiseWithResolvers<void>;
}

export interface Held {
  /** Resolves when the request has reached the point where it is held. */
  readonly arrived: Promise<void>;
  /** Resolves when the client leaves while its request is held. */
  readonly left: Promise<void>;
  release(): void;
}

/** The faults and holds for requests to come: each request takes the first of each. */
export class TokenAnswers {
  readonly #next: TokenFault[] = [];
  #always: TokenFault | undefined;
  readonly #holds: Hold[] = [];

  /** One fault for each of the requests to come. */
  next(...faults: TokenFault[]): void {
    this.#next.push(...faults);
  }

  /** A fault of all requests that `next` does not take. */
  always(fault: TokenFault): void {
    this.#always = fault;
  }

  /** Stops one request to come, before or after it is processed, until it is released. */
  hold(when: Hold['when']): Held {
    const [arrived, left, released] = [1, 2, 3].map(() => Promise.withResolvers<void>());
    this.#holds.push({ when, arrived: arrived!, left: left!, released: released! });
    return { arrived: arrived!.promise, left: left!.promise, release: released!.resolve };
  }

  take(): { fault: TokenFault | undefined; hold: Hold | undefined } {
    return { fault: this.#next.shift() ?? this.#always, hold: this.#holds.shift() };
  }
}

interface ExchangeParts {
  readonly tokens: TokenOffice;
  readonly answers: TokenAnswers;
  /** Each request is added to it. */
  readonly exchanges: Exchange[];
  /** Whether a refresh ends the access token before it; otherwise that one lives on until it expires. */
  readonly revokeOnRefresh: boolean;
  /** The status of the refusal of a refresh before the access token has expired; the refresh token stays valid. */
  readonly refuseEarlyRefresh: 400 | 403 | undefined;
}

/** POST /oauth/token */
export function tokenEndpoint(parts: ExchangeParts): Listener {
  return async (request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      const form = await formOf(request);
      const refreshToken = form.get('refresh_token') ?? '';
      const exchange: Exchange = { refreshToken, outcome: 'not-processed' };
      parts.exchanges.push(exchange);
      const { fault, hold } = parts.answers.take();
      if (hold?.when === 'before') await pass(hold, gone.signal);
      const isInstead = fault === 'drop-before' || typeof fault === 'object';
      const answer = isInstead ? undefined : process(form, exchange, parts);
      if (hold?.when === 'after') await pass(hold, gone.signal);
      send(response, exchange, answer, fault);
    } catch (error) {
      if (!gone.signal.aborted && !request.socket.destroyed) response.destroy(error as Error);
    }
  };
}

/** Rejects if the client leaves during the wait. */
async function pass({ arrived, left, released }: Hold, gone: AbortSignal): Promise<void> {
  const leave = () => left.resolve();
  gone.addEventListener('abort', leave);
  if (gone.aborted) leave();
  arrived.resolve();
  await Promise.race([released.promise, left.promise]);
  // The signal is aborted once an answer is sent, too; then the client has not left.
  gone.removeEventListener('abort', leave);
  gone.throwIfAborted();
}

function process(
  form: URLSearchParams,
  exchange: Exchange,
  { tokens, revokeOnRefresh, refuseEarlyRefresh }: ExchangeParts,
): Answer {
  const isAccepted =
    form.get('grant_type') === 'refresh_token' && tokens.accepts(exchange.refreshToken);
  if (isAccepted && refuseEarlyRefresh !== undefined && tokens.isCurrentValid) {
    exchange.outcome = 'too-early';
    return {
      status: refuseEarlyRefresh,
      body: { error: 'invalid_grant', error_description: 'token not expired' },
    };
  }
  if (isAccepted && revokeOnRefresh) tokens.revokeAccessTokens();
  const answer = answerGrant(form, tokens);
  exchange.outcome = answer.status === 200 ? 'spent-in-silence' : 'invalid-grant';
  return answer;
}

function send(
  response: ServerResponse,
  exchange: Exchange,
  answer: Answer | undefined,
  fault: TokenFault | undefined,
): void {
  if (fault === 'drop-before' || fault === 'drop-after') return void response.destroy();
  const json = JSON.stringify(answer?.body);
  const isSpent = answer?.status === 200;
  let sent: RawAnswer = { status: answer?.status ?? 500, body: json };
  if (typeof fault === 'object') sent = fault;
  else if (fault && isSpent) sent = fault(json);
  const { status, body = '', headers } = sent;
  const type = { 'content-type': 'application/json; charset=utf-8' };
  response.writeHead(status, {
    ...(body.length > 0 && type),
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body, () => {
    if (isSpent && body.length > 0) exchange.outcome = 'answered';
  });
}
