import { agentHeaders } from '../../service/request.ts';
import { get, reasonOf } from './connection.ts';
import { LARGEST_TOKEN_SET_BYTES, readTokenSet, type TokenPair } from '../token-set.ts';

/** Why a token set could not be read. The message ends with what to do, and never contains a link or a token. */
export class TokenLinkError extends Error {
  override name = 'TokenLinkError';
  /** Whether a retry may succeed. */
  readonly passing: boolean;
  constructor(message: string, passing: boolean, cause?: unknown) {
    super(message, { cause });
    this.passing = passing;
  }
}

interface TokenLinkOptions {
  /** Value of `User-Agent` and `Api-User-Agent`. */
  agent: string;
  /** URL of the proxy to go through, if there is one. */
  proxy: string | undefined;
}

/** A token link that is read on demand. */
export function tokenLinkAt(
  url: string,
  {
    agent,
    proxyFor,
  }: { readonly agent: string; readonly proxyFor: (url: string) => string | undefined },
) {
  return { url, read: () => readTokenLink(url, { agent, proxy: proxyFor(url) }) };
}

const MAKE_A_NEW_ONE =
  'Have an administrator make a new token in the personal account of the recruiting service, and use its new link.';

const SAVE_THE_JSON =
  'Save the JSON that it shows to a file, and run `tokens import <file>`; or run `tokens import -` and paste the JSON.';

const CHECK_THE_LINK =
  'Check that it is the whole link that the personal account shows for the token.';

/**
 * Reads the token set from its one-time link. Reading does not invalidate the link; the first refresh does.
 *
 * @throws TokenLinkError
 */
export async function readTokenLink(link: string, options: TokenLinkOptions): Promise<TokenPair> {
  const url = new URL(link);
  const { host } = url;
  const { status, body, isPage } = await read(url, options);
  if (status >= 300 && status < 400) {
    throw new TokenLinkError(
      `The token link at ${host} answers with a redirect, which is not followed. ` +
        `Open it in a browser. ${SAVE_THE_JSON}`,
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
  const needsPerson = isPage && (status === 401 || status === 403);
  if (status !== 200 && !needsPerson) {
    throw new TokenLinkError(
      `The token link at ${host} answered with status ${status}. ` +
        (status >= 500 || status === 429 ? 'Wait until the service works again.' : CHECK_THE_LINK),
      true,
    );
  }
  const pair = body === undefined ? undefined : readTokenSet(parse(body));
  if (!pair && isPage) {
    throw new TokenLinkError(
      `The token link at ${host} answers with a page for people, not with the JSON of a token set. Open it in a browser. ` +
        SAVE_THE_JSON,
      false,
    );
  }
  if (!pair) {
    throw new TokenLinkError(
      `The token link at ${host} does not give a token set (JSON with access_token and refresh_token). ` +
        CHECK_THE_LINK,
      false,
    );
  }
  return pair;
}

/**
 * Reads the token set from the text that a token link shows. Its age does not matter: the first refresh shows whether
 * it still works.
 *
 * @throws TokenLinkError
 */
export function readTokenFile(text: string): TokenPair {
  const isHuge = Buffer.byteLength(text) > LARGEST_TOKEN_SET_BYTES;
  const pair = isHuge ? undefined : readTokenSet(parse(text.replace(/^\uFEFF/, '')));
  if (pair) return pair;
  if (/^\uFEFF?\s*</.test(text)) {
    throw new TokenLinkError(
      'This is a page, not the JSON of a token set (access_token and refresh_token). Save the JSON that the page shows in a browser, ' +
        'not the page itself.',
      false,
    );
  }
  throw new TokenLinkError(
    `${isHuge ? 'More than 64 KiB are' : 'This is'} not a token set (JSON with access_token and refresh_token). ` +
      'Give the whole text that the token link shows in a browser, or the link itself.',
    false,
  );
}

async function read(url: URL, { agent, proxy }: TokenLinkOptions) {
  const headers = { accept: 'application/json', ...agentHeaders(agent) };
  try {
    return await get(url, { headers, proxy });
  } catch (error) {
    throw new TokenLinkError(
      `The token link at ${url.host} cannot be read (${reasonOf(error)}). ` +
        'Check the link, the network, HTTPS_PROXY and NODE_EXTRA_CA_CERTS.',
      true,
      error,
    );
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
