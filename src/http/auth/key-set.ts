import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { FetchKeys } from './fetch-keys.ts';

export interface KeySetParts {
  readonly fetchKeys: FetchKeys;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Then the keys are fetched again, so that one that its issuer withdrew ends. */
export const MAX_AGE_MS = 10 * 60_000;
/** For so long after a fetch, no key that is not known makes another: anybody can make such a token. */
export const COOLDOWN_MS = 30_000;
/** The same after a fetch that failed. */
export const RETRY_MS = 5_000;

/**
 * The keys of an issuer, fetched when they are first needed, and when a token names one that is not among them.
 * While they cannot be fetched those that are known go on, however long: each token still ends at its own time.
 *
 * jose has a remote key set of its own. After its maximal age that one refuses all tokens while the issuer is
 * down, it asks again for each token then, and it goes by the wall clock.
 */
export function createKeySet({ fetchKeys, clock, log }: KeySetParts): JWTVerifyGetKey {
  let known: { readonly find: JWTVerifyGetKey; readonly since: number } | undefined;
  let last: { readonly at: number; readonly failed: boolean } | undefined;
  let pending: Promise<void> | undefined;

  return async (header, token) => {
    if (!known || clock.elapsed() - known.since >= MAX_AGE_MS) {
      const fetching = fetchAgain();
      // Once a fetch failed, nobody waits for the next ones who can go on without.
      if (!known || !last?.failed) await fetching;
    }
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await fetchAgain();
      return find(header, token);
    }
  };

  function find(...asked: Parameters<JWTVerifyGetKey>) {
    if (!known) throw new errors.JWKSNoMatchingKey('No keys are known yet');
    return known.find(...asked);
  }

  /** One at a time, and not too often. Never rejects. */
  function fetchAgain(): Promise<void> | undefined {
    const rest = last?.failed ? RETRY_MS : COOLDOWN_MS;
    if (pending || (last && clock.elapsed() - last.at < rest)) return pending;
    pending = fetchNow().finally(() => (pending = undefined));
    return pending;
  }

  async function fetchNow(): Promise<void> {
    let failed = false;
    try {
      // It checks the shape itself.
      const keys = createLocalJWKSet((await fetchKeys()) as JSONWebKeySet);
      known = { find: keys, since: clock.elapsed() };
    } catch (error) {
      failed = true;
      const { message: reason } = error as Error;
      log.warn({ reason }, 'the keys of AUTH_JWKS_URL could not be fetched');
    }
    last = { at: clock.elapsed(), failed };
  }
}
