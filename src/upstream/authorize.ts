import type { GraphQLError } from 'graphql';
import { codedError } from '../errors.ts';
import type { UpstreamAnswer } from './upstream-answer.ts';

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
}

export type UnauthorizedAnswer = Extract<UpstreamAnswer, { kind: 'unauthorized' }>;
export type AuthorizedAnswer = Exclude<UpstreamAnswer, UnauthorizedAnswer>;

/** One for a token that was renewed meanwhile, one for a renewal because of this request. */
const MAX_REPLAYS = 2;

/**
 * The token to send a request again with. The service refuses a token before it executes anything, so mutations are
 * sent again as well.
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
  const error = unauthorized(answer);
  tellRequestId(error, answer);
  throw error;
}

/** Adds the service's id of the request to an error, where callers may see it: its support finds the request by it. */
export function tellRequestId(
  { extensions }: GraphQLError,
  { requestId }: { readonly requestId?: string },
): void {
  if (requestId !== undefined) extensions['serviceRequestId'] = requestId;
}

function unauthorized({ status, detail }: UnauthorizedAnswer) {
  if (status === 401 && detail === 'token_expired') {
    return codedError(
      'UPSTREAM_UNAUTHORIZED',
      'The recruiting service refuses a new access token as expired, so renewing it again would not help: ' +
        'the clock of the service, or the lifetime that it states for its tokens, is wrong. ' +
        'Report this to the support of the service; the gateway renews the token again when it is due.',
    );
  }
  return codedError(
    'UPSTREAM_UNAUTHORIZED',
    `The recruiting service refuses the gateway's access token (${status}) although it has not expired: ` +
      'the administrator who made it was probably demoted or blocked, or the token was revoked. ' +
      'Have an administrator check the account, and make a new token if need be.',
  );
}
