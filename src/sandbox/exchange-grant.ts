import { setTimeout as wait } from 'node:timers/promises';
import { problem } from './answer.ts';
import type { Answer } from './answer.ts';
import { contentType, readBody } from './route-requests.ts';
import type { Route, Stats } from './route-requests.ts';
import type { TokenFault, TokenFaults } from './token-answers.ts';
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

export interface ExchangeParts {
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
