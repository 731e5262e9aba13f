import type { GraphQLError } from 'graphql';
import { codedError, OperatorError } from '../errors.ts';
import type { UpstreamAnswer, UpstreamResult } from './read-response.ts';

const FIRST_WAIT_MS = 100;
/** Instead of a longer wait, the error is reported with the time after which the caller can try again. */
const LONGEST_WAIT_MS = 10_000;

type UnauthorizedAnswer = Extract<UpstreamAnswer, { kind: 'unauthorized' }>;
export type AuthorizedAnswer = Exclude<UpstreamAnswer, UnauthorizedAnswer>;
export type Unanswered = Exclude<AuthorizedAnswer, UpstreamResult>;

/**
 * Returns the error of an answer without a result, and how long to wait before the request is sent again, ms; Infinity
 * if it is not. It is sent again after failures that may be temporary: no connection, 5xx, and 429 unless its
 * Retry-After is longer than 10 s. Up to half of the wait is added at random, as long as it does not exceed 10 s.
 *
 * @param attempt how often it was sent so far
 */
export function failureOf(answer: Unanswered, attempt: number) {
  const { error, wait = Infinity } = judge(answer, FIRST_WAIT_MS * 2 ** (attempt - 1));
  tellRequestId(error, answer);
  if (wait > LONGEST_WAIT_MS) return { error, wait: Infinity };
  return { error, wait: Math.min(wait * (1 + Math.random() / 2), LONGEST_WAIT_MS) };
}

/** @param backoff in ms, like the `wait` that is returned; without one, sending again cannot help */
function judge(answer: Unanswered, backoff: number) {
  switch (answer.kind) {
    case 'failure':
      return { error: answer.error, wait: answer.isTemporary ? backoff : undefined };
    case 'rate-limited': {
      const { retryAfter } = answer;
      const seconds = retryAfter === undefined ? null : Math.max(1, Math.ceil(retryAfter));
      return {
        error: codedError(
          'UPSTREAM_RATE_LIMITED',
          'The recruiting service limits the rate of requests. Try again ' +
            (seconds === null ? 'later.' : `in ${seconds} s.`),
          { extensions: { retryAfter: seconds } },
        ),
        wait: retryAfter === undefined ? backoff : Math.max(retryAfter * 1000, backoff),
      };
    }
  }
}

/** The tokens that requests are sent with. */
export interface BearerTokens<
  Token extends { readonly value: string } = { readonly value: string },
> {
  /** The newest token, or a promise of the first one. */
  accessToken(): Token | Promise<Token>;
  /** Returns a newer token, or undefined if a newer one would not help. @param detail of the 401 */
  afterRefusal(refused: Token, detail: string): Promise<Token | undefined>;
  /** Called for each result that a token brought. */
  accepted(token: Token): void;
  /** Called when the service refused a token, and no newer one helps. */
  refused(token: Token): void;
}

/** One for a token that was renewed while the request was sent, one for a renewal because of this request. */
const MAX_REPLAYS = 2;

/**
 * Returns the token to send a request again with. The service refuses a token before it executes anything, so mutations
 * are sent again as well.
 *
 * @param replays how often the request was sent again so far
 * @throws UPSTREAM_UNAUTHORIZED, and what the tokens throw
 */
export async function newerToken<Token extends { readonly value: string }>(
  tokens: BearerTokens<Token>,
  refused: Token,
  answer: UnauthorizedAnswer,
  replays: number,
): Promise<Token> {
  const newer =
    answer.status === 401 && replays < MAX_REPLAYS
      ? await tokens.afterRefusal(refused, answer.detail)
      : undefined;
  if (newer) return newer;
  tokens.refused(refused);
  const error = unauthorized(answer);
  tellRequestId(error, answer);
  throw error;
}

/** Adds the service's id of the request to an error, where callers may see it: its support finds the request by it. */
function tellRequestId(
  { extensions }: GraphQLError,
  { requestId }: { readonly requestId?: string },
): void {
  if (requestId !== undefined) extensions['serviceRequestId'] = requestId;
}

function unauthorized({ status, detail }: UnauthorizedAnswer) {
  if (status === 401 && detail === 'token_expired') {
    return new OperatorError(
      'UPSTREAM_UNAUTHORIZED',
      'The recruiting service refuses a new access token as expired, so renewing it again would not help: ' +
        'the clock of the service, or the lifetime that it states for its tokens, is wrong. ' +
        'Report this to the support of the service; the gateway renews the token again when it is due.',
      { needsOperator: true },
    );
  }
  return new OperatorError(
    'UPSTREAM_UNAUTHORIZED',
    `The recruiting service refuses the gateway's access token (${status}) although it has not expired: ` +
      'the administrator who made it was probably demoted or blocked, or the token was revoked. ' +
      'Run `tokens check` to see what the service answers. Have an administrator check the account, and make a new token if need be.',
    { needsOperator: true },
  );
}
