import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from 'jose';
import type { Logger } from 'pino';
import { fetch as send, ProxyAgent } from 'undici';
import type { Clock } from '../../clock.ts';
import { BodyParts, BodyTooLarge } from '../../memory/byte-limit.ts';

interface KeySetParts {
  /** The URL of the proxy; undefined: none. */
  readonly proxy?: string | undefined;
  readonly clock: Pick<Clock, 'elapsed'>;
  readonly log: Logger;
  /** The time for the whole answer. Callers wait for it. Default: 5 s */
  readonly timeoutMs?: number;
}

/** The age at which the keys are fetched again, so that a key withdrawn by its issuer stops being accepted. */
export const MAX_AGE_MS = 10 * 60_000;
/** The time after a failed fetch in which no token causes another one: anyone can make tokens. */
export const RETRY_MS = 5_000;

const TIMEOUT_MS = 5_000;
/** A set of keys has a few kilobytes. */
const MAX_BODY_BYTES = 256 * 1024;

/** A key is unknown, and it is unclear whether the issuer has it: its keys cannot be fetched. */
export class KeysUnavailable extends Error {
  override name = 'KeysUnavailable';
  readonly code = 'KEYS_UNAVAILABLE';
  readonly retrySeconds: number;
  constructor(retryMs: number) {
    super('The keys cannot be fetched.');
    this.retrySeconds = Math.max(1, Math.ceil(retryMs / 1000));
  }
}

/**
 * The keys of an issuer, fetched when they are first needed, when a token names an unknown key (not within 30 s of the
 * last time), and every ten minutes while there are callers. While they cannot be fetched, the known keys remain valid
 * without a limit, because each token expires at its own time.
 *
 * Only the server that the operator named is trusted: redirects are not followed.
 *
 * @returns finds the key of a token; rejects with KeysUnavailable, or as jose does
 */
export function keySet(
  address: string,
  { proxy, clock, log, timeoutMs = TIMEOUT_MS }: KeySetParts,
): JWTVerifyGetKey {
  const dispatcher =
    proxy === undefined ? {} : { dispatcher: new ProxyAgent({ uri: proxy, proxyTunnel: true }) };
  let failedAt: number | undefined;
  let fetchedAt: number | undefined;

  const fetchKeys = async (url: string, options: object): Promise<Response> => {
    const rest = failedAt === undefined ? 0 : RETRY_MS - (clock.elapsed() - failedAt);
    if (rest > 0) throw new KeysUnavailable(rest);
    try {
      const answer = await send(url, { ...options, ...dispatcher });
      if (answer.status !== 200)
        throw new Error(`the server answered with status ${answer.status}`);
      const usable = usableKeys(await textOf(answer.body ?? []));
      failedAt = undefined;
      fetchedAt = clock.elapsed();
      return Response.json(usable);
    } catch (error) {
      failedAt = clock.elapsed();
      log.warn(
        { reason: reasonOf(error, timeoutMs) },
        'the keys of AUTH_JWKS_URL could not be fetched. Until they can be, known keys remain valid. Check the URL and its server.',
      );
      throw new KeysUnavailable(RETRY_MS);
    }
  };
  const keys = createRemoteJWKSet(new URL(address), {
    cacheMaxAge: Infinity,
    timeoutDuration: timeoutMs,
    [customFetch]: fetchKeys,
  });

  return async (header, token) => {
    if (fetchedAt !== undefined && clock.elapsed() - fetchedAt >= MAX_AGE_MS) {
      const hasFailed = failedAt !== undefined;
      const reloading = keys.reload().catch(() => {});
      // While the issuer is down, callers with known keys do not wait for it.
      if (!hasFailed) await reloading;
    }
    return keys(header, token);
  };
}

/** Leaving the loop ends the answer. @throws BodyTooLarge */
async function textOf(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<string> {
  const parts = new BodyParts({ each: MAX_BODY_BYTES });
  for await (const part of body) parts.add(part);
  // TextDecoder removes the byte order mark that some servers put before their JSON.
  return new TextDecoder().decode(parts.bytes());
}

/** @throws Error for something that is no key set. Members that are no keys are left out, as newer kinds are ignored */
function usableKeys(text: string): { readonly keys: readonly object[] } {
  let set: { readonly keys?: unknown } | null;
  try {
    set = JSON.parse(text) as typeof set;
  } catch {
    // Not the message of the parser, which contains a piece of the text.
    throw new Error('the answer is not JSON');
  }
  if (!Array.isArray(set?.keys)) throw new Error('the answer is not a set of keys');
  const keys = set.keys.filter(
    (key): key is object => typeof key === 'object' && key !== null && !Array.isArray(key),
  );
  if (keys.length === 0 && set.keys.length > 0) throw new Error('the answer has no key');
  return { keys };
}

function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, message, cause } = error as Error & { cause?: { code?: string } };
  if (name === 'TimeoutError') return `no complete answer within ${timeoutMs / 1000} s`;
  if (error instanceof BodyTooLarge) return `the answer is larger than ${MAX_BODY_BYTES} bytes`;
  return cause?.code ?? message;
}
