import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from 'jose';
import type { Logger } from 'pino';
import { fetch as send, type Dispatcher } from 'undici';
import type { Clock } from '../../clock.ts';

interface KeySetParts {
  /** Opens the connections, through a proxy if there is one. */
  readonly http: Dispatcher;
  readonly clock: Pick<Clock, 'elapsed'>;
  readonly log: Logger;
}

/** The age at which the keys are fetched again, so that a key withdrawn by its issuer stops being accepted. */
export const MAX_AGE_MS = 10 * 60_000;
/** The time after a failed fetch until the next one. */
export const RETRY_MS = 5_000;

/** A key is unknown, and it is unclear whether the issuer has it: its keys cannot be fetched. */
export class KeysUnavailable extends Error {
  override name = 'KeysUnavailable';
  readonly code = 'KEYS_UNAVAILABLE';
}

/**
 * The keys of an issuer, fetched when they are first needed, when a token names an unknown key (not within 30 s of the
 * last time), and every ten minutes while there are callers. While they cannot be fetched, the known keys remain valid
 * without a limit, because each token expires at its own time.
 *
 * Only the server that the operator named is trusted: jose follows no redirect.
 *
 * @returns finds the key of a token; rejects with KeysUnavailable, or as jose does
 */
export function keySet(address: string, { http, clock, log }: KeySetParts): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(address), {
    cacheMaxAge: Infinity,
    [customFetch]: async (url, options) =>
      (await send(url, { ...(options as object), dispatcher: http })) as object as Response,
  });
  const unavailable = (error: unknown): KeysUnavailable => {
    const { message, cause } = error as Error & { cause?: { code?: string } };
    log.warn(
      { reason: cause?.code ?? message },
      'the keys of AUTH_JWKS_URL could not be fetched. Until they can be, known keys remain valid. Check the URL and its server.',
    );
    return new KeysUnavailable('The keys cannot be fetched.', { cause: error });
  };
  let next = 0;
  let reloading: Promise<void> | undefined;
  const reload = async () => {
    next = clock.elapsed() + RETRY_MS;
    await keys.reload().then(() => (next = clock.elapsed() + MAX_AGE_MS), unavailable);
  };

  return async (header, token) => {
    if (clock.elapsed() >= next) await (reloading = reload());
    // With known keys, only the caller who began it waits.
    else if (!keys.jwks()) await reloading;
    if (!keys.jwks()) throw new KeysUnavailable('The keys cannot be fetched.');
    return keys(header, token).catch((error: unknown) => {
      throw OF_TOKENS.some((kind) => error instanceof kind) ? error : unavailable(error);
    });
  };
}

/** What is wrong with a token, and not with the request for the keys. */
const OF_TOKENS = [
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
  errors.JOSENotSupported,
];
