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
  readonly outcome:
    'answered' | 'spent-in-silence' | 'invalid-grant' | 'too-early' | 'not-processed';
}

interface ExchangeParts {
  readonly tokens: TokenOffice;
  readonly faults: TokenFaults;
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
      const exchange: Recorded = {
        refreshToken: form.get('refresh_token') ?? '',
        outcome: 'not-processed',
      };
      parts.exchanges.push(exchange);
      const { fault, hold } = parts.faults.take();

      if (hold?.when === 'before') await hold.pass(gone.signal);
      const answer = isInstead(fault) ? undefined : process(form, exchange, parts);
      if (hold?.when === 'after') await hold.pass(gone.signal);
      await spoil(response, exchange, answer, fault);
    } catch (error) {
      if (!gone.signal.aborted && !request.socket.destroyed) response.destroy(error as Error);
    }
  };
}

type Recorded = { -readonly [Key in keyof Exchange]: Exchange[Key] };

function process(
  form: URLSearchParams,
  exchange: Recorded,
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

/** Whether the fault takes the place of an exchange. */
function isInstead(
  fault: TokenFault | undefined,
): fault is 'drop-before' | Exclude<TokenFault, string | Function> {
  return fault === 'drop-before' || typeof fault === 'object';
}

async function spoil(
  response: ServerResponse,
  exchange: Recorded,
  answer: Answer | undefined,
  fault: TokenFault | undefined,
): Promise<void> {
  if (fault === 'drop-before' || fault === 'drop-after') return void response.destroy();
  const json = JSON.stringify(answer?.body);
  const isSpent = answer?.status === 200;
  const honest = { status: answer?.status ?? 500, body: json };
  const sent: RawAnswer =
    typeof fault === 'object'
      ? fault
      : typeof fault === 'function' && isSpent
        ? fault(json)
        : honest;
  const bytes = Buffer.from(sent.body ?? '');
  if (sent.body !== undefined) {
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.setHeader('content-length', bytes.length);
  }
  for (const [name, value] of Object.entries(sent.headers ?? {})) response.setHeader(name, value);
  response.writeHead(sent.status);
  if (bytes.length > 0) {
    response.write(bytes, (error) => {
      if (!error && isSpent) exchange.outcome = 'answered';
    });
  }
  response.end();
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

/** Before or after the request is processed. */
type HoldPoint = 'before' | 'after';

export interface TokenAnswers {
  /** One fault for each of the requests to come, before those of `every`. */
  next(...faults: TokenFault[]): void;
  /** A fault for each n-th request from now on, not counting those that `next` takes. */
  every(n: number, fault: TokenFault): void;
  /** Stops one request to come, before or after it is processed, until it is released. */
  hold(when: HoldPoint): Held;
}

export interface Held {
  /** Resolves when the request has reached the point where it is held. */
  readonly arrived: Promise<void>;
  /** Resolves when the client leaves while its request is held. */
  readonly left: Promise<void>;
  release(): void;
}

/** The faults and holds for requests to come: each request takes the first of each. */
export class TokenFaults implements TokenAnswers {
  #next: TokenFault[] = [];
  #every: { n: number; fault: TokenFault; count: number }[] = [];
  #holds: Hold[] = [];

  next(...faults: TokenFault[]): void {
    this.#next.push(...faults);
  }

  every(n: number, fault: TokenFault): void {
    if (!Number.isInteger(n) || n < 1)
      throw new RangeError(`${n} is not a valid interval: it must be a whole number from 1.`);
    this.#every.push({ n, fault, count: 0 });
  }

  hold(when: HoldPoint): Held {
    const hold = new Hold(when);
    this.#holds.push(hold);
    return hold;
  }

  take(): { fault: TokenFault | undefined; hold: Hold | undefined } {
    return { fault: this.#next.shift() ?? this.#due(), hold: this.#holds.shift() };
  }

  #due(): TokenFault | undefined {
    for (const rule of this.#every) rule.count += 1;
    // If two are due at once, the later one applies to the next request.
    const due = this.#every.find(({ n, count }) => count >= n);
    if (due) due.count -= due.n;
    return due?.fault;
  }
}

/** One request that stops until it is released or its client leaves. */
class Hold {
  readonly when: HoldPoint;
  readonly #arrival = Promise.withResolvers<void>();
  readonly #leave = Promise.withResolvers<void>();
  readonly #release = Promise.withResolvers<void>();

  constructor(when: HoldPoint) {
    this.when = when;
  }

  /** Resolves when the request has reached this point. */
  get arrived(): Promise<void> {
    return this.#arrival.promise;
  }

  /** Resolves when the client leaves while its request is held. */
  get left(): Promise<void> {
    return this.#leave.promise;
  }

  readonly release = (): void => this.#release.resolve();

  /** Rejects if the client leaves during the wait. */
  async pass(gone: AbortSignal): Promise<void> {
    const leave = () => this.#leave.resolve();
    gone.addEventListener('abort', leave);
    if (gone.aborted) leave();
    this.#arrival.resolve();
    await Promise.race([this.#release.promise, this.#leave.promise]);
    // The signal is aborted once an answer is sent, too; then the client has not left.
    gone.removeEventListener('abort', leave);
    gone.throwIfAborted();
  }
}
