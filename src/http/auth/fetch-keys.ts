import { Client, ProxyAgent } from 'undici';
import { BodyTooLarge, readBody } from '../../read-body.ts';

/** @throws Error whose message is for the log */
export type FetchKeys = () => Promise<unknown>;

export interface FetchKeysOptions {
  /** URL of the proxy to go through, if there is one. */
  readonly proxy?: string | undefined;
  /** For the whole answer. Callers wait for it. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
/** A set of keys takes a few kilobytes. */
const MAX_BODY_BYTES = 256 * 1024;

/** Reads what a JWKS address answers, as JSON. No redirect is followed: the operator names whom to trust. */
export function keysAt(
  address: string,
  { proxy, timeoutMs = TIMEOUT_MS }: FetchKeysOptions = {},
): FetchKeys {
  const { origin, pathname, search } = new URL(address);
  return async () => {
    // It is asked every few minutes: no connection is worth keeping.
    const client =
      proxy === undefined ? new Client(origin) : new ProxyAgent({ uri: proxy, proxyTunnel: true });
    try {
      const { statusCode, body } = await client.request({
        origin,
        method: 'GET',
        path: pathname + search,
        headers: { accept: 'application/json, application/jwk-set+json' },
        signal: AbortSignal.timeout(timeoutMs),
      });
      if (statusCode !== 200) throw new Error(`it answered with status ${statusCode}`);
      return parse(await readBody(body, MAX_BODY_BYTES));
    } catch (error) {
      throw new Error(reasonOf(error, timeoutMs), { cause: error });
    } finally {
      await client.destroy();
    }
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Without the parser's words, which hold a piece of the text.
    throw new Error('its answer is not JSON');
  }
}

function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, code, message } = error as Error & { code?: string };
  if (name === 'TimeoutError') return `no whole answer within ${timeoutMs / 1000} s`;
  if (error instanceof BodyTooLarge) return `its answer is larger than ${MAX_BODY_BYTES} bytes`;
  return code ?? message;
}
