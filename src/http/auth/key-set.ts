import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from 'jose';
import type { Logger } from 'pino';
import { fetch as send, ProxyAgent } from 'undici';
import type { Clock } from '../../clock.ts';

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
      const set = (await answer.json()) as JSONWebKeySet;
      // Throws if it is not a set of keys, which jose would report only later.
      createLocalJWKSet(set);
      failedAt = undefined;
      fetchedAt = clock.elapsed();
      return Response.json(set);
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

function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, message, cause } = error as Error & { cause?: { code?: string } };
  if (name === 'TimeoutError') return `no complete answer within ${timeoutMs / 1000} s`;
  // Not the message of the parser, which contains a piece of the text.
  if (error instanceof SyntaxError) return 'the answer is not JSON';
  if (error instanceof errors.JWKSInvalid) return 'the answer is not a set of keys';
  return cause?.code ?? message;
}
