import { BodyTooLarge, readBody } from '../../read-body.ts';
import { clientOver } from './client-over.ts';
import { openConnection } from './open-connection.ts';
import { PlainError } from './reason-of.ts';

export interface GetOptions {
  headers: Record<string, string>;
  /** URL of the proxy to go through, if there is one. */
  proxy: string | undefined;
  timeoutMs?: number | undefined;
}

/** A body that is larger than anything the service says in JSON is left out. */
export interface GetAnswer {
  readonly status: number;
  readonly body: string | undefined;
}

const TIMEOUT_MS = 30_000;
const MAX_BODY_BYTES = 64 * 1024;

/** One GET on a connection of its own. No redirect is followed. */
export async function get(url: URL, options: GetOptions): Promise<GetAnswer> {
  const { headers, proxy, timeoutMs = TIMEOUT_MS } = options;
  const { client, close } = clientOver(await openConnection(url, proxy), url);
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new PlainError(`no answer within ${timeoutMs / 1000} s`)),
    timeoutMs,
  );
  try {
    const path = url.pathname + url.search;
    const response = await client.request({ method: 'GET', path, headers, signal: late.signal });
    return { status: response.statusCode, body: await bodyOf(response.body) };
  } finally {
    clearTimeout(timer);
    await close();
  }
}

async function bodyOf(body: AsyncIterable<Uint8Array>): Promise<string | undefined> {
  try {
    return await readBody(body, MAX_BODY_BYTES);
  } catch (error) {
    if (error instanceof BodyTooLarge) return undefined;
    throw error;
  }
}
