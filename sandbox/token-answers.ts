import { setTimeout as wait } from 'node:timers/promises';
import {
  contentType,
  problem,
  readBody,
  type Answer,
  type Route,
  type Stats,
} from './route-requests.ts';
import type { TokenOffice } from './token-office.ts';

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
  tokens: TokenOffice;
  stats: Stats;
  faults: TokenFaults;
  /** Each request is added to it. */
  exchanges: Exchange[];
  /** Milliseconds. */
  latency: number;
  /** The status of the refusal of an early refresh. */
  earlyStatus: 400 | 403;
}

/** POST /oauth/token */
export function oauthTokenEndpoint(parts: ExchangeParts): Route['answer'] {
  return async (request, gone) => {
    const text = await readBody(request, maxBytes);
    if (text === undefined) return problem(413, `The body is larger than ${maxBytes} bytes.`);

    // Only a form has fields: any other body is treated as one without a grant_type.
    const form = new URLSearchParams(contentType(request) === formType ? text : '');
    const exchange: Recorded = {
      refreshToken: form.get('refresh_token') ?? '',
      outcome: 'not-processed',
    };
    parts.exchanges.push(exchange);
    const { fault, hold } = parts.faults.take();

    if (hold?.when === 'before') await hold.pass(gone);
    const answer = skipsProcessing(fault) ? undefined : process(form, exchange, parts);
    if (hold?.when === 'after') await hold.pass(gone);
    if (parts.latency > 0) await wait(parts.latency, undefined, { signal: gone });
    return spoil(answer, fault);
  };
}

const maxBytes = 16 * 1024;
const formType = 'application/x-www-form-urlencoded';

type Recorded = { -readonly [Key in keyof Exchange]: Exchange[Key] };

function process(form: URLSearchParams, exchange: Recorded, parts: ExchangeParts): Answer {
  if (form.get('grant_type') !== 'refresh_token') return unsupportedGrantType;

  const set = parts.tokens.exchange(exchange.refreshToken);
  if (set === 'early') {
    exchange.outcome = 'too-early';
    return { ...tokenNotExpired, status: parts.earlyStatus };
  }
  if (set === 'invalid') {
    exchange.outcome = 'invalid-grant';
    return invalidGrant;
  }
  parts.stats.refreshes += 1;
  exchange.outcome = 'spent-in-silence';
  return { status: 200, body: set, whenSent: () => (exchange.outcome = 'answered') };
}

function skipsProcessing(fault: TokenFault | undefined): boolean {
  return fault === 'drop-before' || typeof fault === 'object';
}

function spoil(answer: Answer | undefined, fault: TokenFault | undefined): Answer | undefined {
  if (fault === 'drop-before' || fault === 'drop-after') return undefined;
  if (fault === 'cut-body') return answer && { ...answer, halved: true };
  if (fault === undefined) return answer;
  if (typeof fault === 'function')
    return answer?.status === 200 ? rewritten(answer, fault) : answer;
  const { body, ...head } = fault;
  return body === undefined ? head : { ...head, text: body };
}

function rewritten(
  answer: Answer,
  rewrite: Extract<TokenFault, (json: string) => unknown>,
): Answer {
  const { body, ...head } = rewrite(JSON.stringify(answer.body));
  return { ...head, text: body, ...(answer.whenSent && { whenSent: answer.whenSent }) };
}

const unsupportedGrantType: Answer = {
  status: 400,
  body: {
    error: 'unsupported_grant_type',
    error_description: 'The authorization grant type is not supported by the authorization server.',
  },
};

const invalidGrant: Answer = {
  status: 400,
  body: {
    error: 'invalid_grant',
    error_description: 'Refresh token is invalid, expired or revoked.',
  },
};

const tokenNotExpired = {
  body: { error: 'invalid_grant', error_description: 'token not expired' },
};

/**
 * What goes wrong with an answer of /oauth/token.
 * - `drop-before`: the connection is cut, with nothing processed.
 * - `drop-after`: the token is exchanged, and the connection cut before any byte of an answer.
 * - `cut-body`: the token is exchanged, and the connection cut in the middle of the body.
 * - an object: this answer instead, with nothing processed; JSON unless its headers say otherwise, or what `write`
 *   sends.
 * - a function: the token is exchanged, and the JSON of the new pair goes out as the function writes it; a refusal
 *   stays as it is.
 */
export type TokenFault =
  | 'drop-before'
  | 'drop-after'
  | 'cut-body'
  | ({ status: number; body?: string } & Pick<Answer, 'headers' | 'write'>)
  | ((json: string) => {
      status: number;
      body: string | Uint8Array;
      headers?: Record<string, string>;
    });

/** Before or after the request is processed. */
export type HoldPoint = 'before' | 'after';

export interface TokenAnswers {
  /** One fault for each of the requests to come, before those of `every`. */
  next(...faults: TokenFault[]): void;
  /** A fault for each n-th request from now on, not counting those that `next` takes. */
  every(n: number, fault: TokenFault): void;
  /** Removes all faults, and the holds that no request has reached. */
  clear(): void;
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

  clear(): void {
    this.#next = [];
    this.#every = [];
    this.#holds = [];
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
