import { codedError } from '../errors.ts';
import type { UpstreamAnswer } from './read-response.ts';

/** Whose rights a request goes out with; the tokens stage implements it. */
export interface BearerTokens<
  Token extends { readonly value: string } = { readonly value: string },
> {
  accessToken(): Promise<Token>;
  afterRefusal(refused: Token, detail: string): Promise<Token | undefined>;
  accepted(token: Token): void;
}

/** An answer after the matter of tokens is settled. */
export type AuthorizedAnswer = Exclude<UpstreamAnswer, { kind: 'unauthorized' }>;

/** One for a token that others renewed meanwhile, one for a renewal of our own. */
const MAX_REPLAYS = 2;

/**
 * Sends with the newest token, and again with a newer one when it is refused. A 401 is refused before execution, so
 * mutations are replayed as well.
 */
export async function authorizing<Token extends { readonly value: string }>(
  tokens: BearerTokens<Token>,
  send: (token: string) => Promise<UpstreamAnswer>,
): Promise<AuthorizedAnswer> {
  let token = await tokens.accessToken();
  for (let replays = 0; ; replays += 1) {
    const answer = await send(token.value);
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
