import { parseJson, readPair, type Pair } from './pair.ts';
import { agentHeaders, send, type ServiceAddress } from './service.ts';

const LINK_MS = 30_000;

/**
 * Reads the token set of a one-time link. Reading does not end the link; the first refresh of its tokens does.
 *
 * @throws Error for the operator, which never contains the link or a token
 */
export async function readLink(
  link: string,
  { agent, http }: Pick<ServiceAddress, 'agent' | 'http'>,
): Promise<Pair> {
  const url = new URL(link);
  const headers = { accept: 'application/json', ...agentHeaders(agent) };
  const { status, text, flaw } = await send(http, url, { headers }, LINK_MS);
  const pair = readPair(parseJson(text));
  if (pair) return pair;
  const subject = `The token link at ${url.host}`;
  if (status === 0) {
    throw new Error(
      `${subject} cannot be read (${flaw}). Check the link, the network, HTTPS_PROXY and NODE_EXTRA_CA_CERTS.`,
    );
  }
  throw new Error(
    `${subject} gives no token set (status ${status}). Check that it is the whole link. It stops working 30 days after it was made, ` +
      'or at the first refresh of its tokens: then have an administrator make a new token in the personal account. If it is a page ' +
      'for people, open it in a browser, save the JSON that it shows to a file, and run `tokens import <file>`.',
  );
}

/**
 * Reads the token set in the text of a file or of the standard input.
 *
 * @throws Error for the operator, which never contains the link or a token
 */
export function readTokenSet(text: string): Pair {
  const pair = readPair(parseJson(text));
  if (pair) return pair;
  throw new Error(
    'This is not a token set (JSON in UTF-8, with access_token and refresh_token). Give the whole text that the token link ' +
      'shows in a browser, not the page itself, or give the link.',
  );
}
