import { request } from 'undici';
import { BodyTooLarge, readBody } from '../read-body.ts';
import { readTokenSet, type TokenPair } from './token-set.ts';

/** Why a token link gave no token set. The message says what to do, and never holds the link. */
export class TokenLinkError extends Error {
  override name = 'TokenLinkError';
  /** Whether the same link may work later. */
  readonly passing: boolean;
  constructor(message: string, passing: boolean, cause?: unknown) {
    super(message, { cause });
    this.passing = passing;
  }
}

const TIMEOUT_MS = 30_000;
const MAX_BODY_BYTES = 64 * 1024;
const MAKE_A_NEW_ONE =
  'Have an administrator make a new token in the personal account of the recruiting service, and set TOKEN_LINK to its new link.';

/**
 * Reads the token set from its one-time link. Reading it changes nothing at the service: the link dies
 * with the first refresh.
 *
 * @throws TokenLinkError
 */
export async function readTokenLink(link: string, agent: string): Promise<TokenPair> {
  const host = new URL(link).host;
  const { status, body } = await get(link, host, agent);
  if (status >= 300 && status < 400) {
    throw new TokenLinkError(
      `The token link at ${host} answers with a redirect, which is not followed. ` +
        'Open it in a browser and set TOKEN_LINK to the address that shows the JSON.',
      false,
    );
  }
  if (status === 404 || status === 410) {
    throw new TokenLinkError(
      `The token link at ${host} is dead (status ${status}): it stops working 30 days after it was made, ` +
        `or at the first refresh of its tokens. ${MAKE_A_NEW_ONE}`,
      false,
    );
  }
  if (status !== 200) {
    throw new TokenLinkError(`The token link at ${host} answered with status ${status}.`, true);
  }
  const pair = body === undefined ? undefined : readTokenSet(parse(body));
  if (!pair) {
    throw new TokenLinkError(
      `The token link at ${host} does not give a token set (JSON with access_token and refresh_token). ` +
        'Check that TOKEN_LINK is the whole link that the personal account shows for the token.',
      false,
    );
  }
  return pair;
}

/** A body that is too large to be a token set is left out. */
async function get(
  link: string,
  host: string,
  agent: string,
): Promise<{ status: number; body: string | undefined }> {
  try {
    const response = await request(link, {
      headers: { accept: 'application/json', 'api-user-agent': agent },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const body = await readBody(response.body, MAX_BODY_BYTES).catch((error: unknown) => {
      if (error instanceof BodyTooLarge) return undefined;
      throw error;
    });
    return { status: response.statusCode, body };
  } catch (error) {
    throw new TokenLinkError(
      `The token link at ${host} cannot be read (${reason(error)}).`,
      true,
      error,
    );
  }
}

function reason(error: unknown): string {
  const { code, name } = error as { code?: string; name?: string };
  return code ?? name ?? 'unknown error';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
