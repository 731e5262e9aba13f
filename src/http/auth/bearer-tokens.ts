import {
  createLocalJWKSet,
  errors,
  type CompactJWSHeaderParameters,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
  decodeProtectedHeader,
  jwtVerify,
  type JWTPayload,
} from 'jose';
import type { Logger } from 'pino';
import { Client, ProxyAgent } from 'undici';
import type { Clock } from '../../clock.ts';
import { BodyTooLarge, readBody } from '../../memory/byte-limit.ts';
import { Queue } from '../../queue.ts';
import type { Caller, Exchange } from '../exchange.ts';

interface KeySetParts {
  readonly fetchKeys: FetchKeys;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The age at which the keys are fetched again, so that a key withdrawn by its issuer stops being accepted. */
export const MAX_AGE_MS = 10 * 60_000;
/** The time after a fetch in which an unknown key id does not cause another: anyone can make a token with such an id. */
export const COOLDOWN_MS = 30_000;
/** The same time after a failed fetch. */
export const RETRY_MS = 5_000;

/** Callers whose tokens wait for a fetch: anyone can make tokens, and a fetch may take seconds. */
export const MAX_WAITING = 1_000;

type KeySet = ReturnType<typeof createKeySet>;

type NamedKey = CompactJWSHeaderParameters;

/**
 * A key is unknown, and it is unclear whether the issuer has it: its keys cannot be fetched, or too many callers wait.
 */
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
 * The keys of an issuer, fetched when they are first needed, and when a token names an unknown key. While they cannot
 * be fetched, the known keys remain valid without a limit, because each token expires at its own time.
 *
 * jose has a remote key set, too. Once its keys are too old, it refuses all tokens while the issuer is down, requests the
 * keys again for each token, and measures their age by the wall clock.
 */
export function createKeySet({ fetchKeys, clock, log }: KeySetParts) {
  let known: { readonly find: JWTVerifyGetKey; readonly since: number } | undefined;
  let last: { readonly at: number; readonly failed: boolean } | undefined;
  let pending: Promise<void> | undefined;
  /** The callers that wait for the fetch in progress. */
  const waiting = new Queue<undefined>();

  return {
    /** Finds a key among those that are known. */
    find,
    /**
     * Resolves when it is clear whether the key of a token is known.
     *
     * @param caller waits only until it leaves
     * @throws KeysUnavailable, and the abort reason of the caller's signal
     */
    ready: async (header: NamedKey, caller?: { readonly signal: AbortSignal }): Promise<void> => {
      if (!known || clock.elapsed() - known.since >= MAX_AGE_MS) {
        const fetching = fetchAgain();
        // After a failed fetch, callers do not wait for the next one if there are keys.
        if (fetching && (!known || !last?.failed)) await fetched(caller);
      }
      if (await isKnown(header)) return;
      if (fetchAgain()) {
        await fetched(caller);
        if (await isKnown(header)) return;
      }
      if (last?.failed) throw new KeysUnavailable(RETRY_MS - (clock.elapsed() - last.at));
    },
  };

  async function find(...token: Parameters<JWTVerifyGetKey>) {
    if (!known) throw new errors.JWKSNoMatchingKey('No keys are known yet');
    return known.find(...token);
  }

  async function isKnown(header: NamedKey): Promise<boolean> {
    try {
      await find(header, NO_TOKEN);
      return true;
    } catch (error) {
      // Other faults are found when the token is verified.
      return !(error instanceof errors.JWKSNoMatchingKey);
    }
  }

  function fetched(caller?: { readonly signal: AbortSignal }): Promise<void> {
    if (waiting.size >= MAX_WAITING) throw new KeysUnavailable(RETRY_MS);
    return waiting.wait(undefined, { signal: caller?.signal });
  }

  /** Fetches at most once at a time, and not too often. Never rejects. */
  function fetchAgain(): Promise<void> | undefined {
    const rest = last?.failed ? RETRY_MS : COOLDOWN_MS;
    if (pending || (last && clock.elapsed() - last.at < rest)) return pending;
    return (pending = fetchNow());
  }

  async function fetchNow(): Promise<void> {
    let failed = false;
    try {
      // createLocalJWKSet checks the shape of the answer.
      const keys = createLocalJWKSet((await fetchKeys()) as JSONWebKeySet);
      known = { find: keys, since: clock.elapsed() };
    } catch (error) {
      failed = true;
      const { message: reason } = error as Error;
      log.warn(
        { reason },
        'the keys of AUTH_JWKS_URL could not be fetched. Until they can be, known keys remain valid. Check the URL and its server.',
      );
    }
    last = { at: clock.elapsed(), failed };
    pending = undefined;
    for (const { begin } of waiting) begin();
  }
}

/** Keys are found by the header. */
const NO_TOKEN = { payload: '', signature: '' };

/** @throws Error with a message for the log */
type FetchKeys = () => Promise<unknown>;

interface FetchKeysOptions {
  /** The URL of the proxy; undefined: none. */
  readonly proxy?: string | undefined;
  /** The time for the whole answer. Callers wait for it. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
/** A set of keys has a few kilobytes. */
const MAX_BODY_BYTES = 256 * 1024;

/** Fetches a key set as JSON. Redirects are not followed: only the server that the operator named is trusted. */
export function keysAt(
  address: string,
  { proxy, timeoutMs = TIMEOUT_MS }: FetchKeysOptions = {},
): FetchKeys {
  const { origin, pathname, search } = new URL(address);
  return async () => {
    // The connection is not kept, because keys are requested only every few minutes.
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
      if (statusCode !== 200) throw new Error(`the server answered with status ${statusCode}`);
      return parse(await readBody(body, { each: MAX_BODY_BYTES }));
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
    // Not the message of the parser, which contains a piece of the text.
    throw new Error('the answer is not JSON');
  }
}

function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, code, message } = error as Error & { code?: string };
  if (name === 'TimeoutError') return `no complete answer within ${timeoutMs / 1000} s`;
  if (error instanceof BodyTooLarge) return `the answer is larger than ${MAX_BODY_BYTES} bytes`;
  return code ?? message;
}

interface BearerTokenParts {
  readonly issuer: string;
  readonly audience: string;
  /** The scopes that have a meaning here. Others are ignored. */
  readonly scopes: readonly string[];
  readonly keys: KeySet;
  readonly clock: Clock;
  readonly log: Logger;
}

/** No algorithm with a shared secret: an attacker could use the public key as that secret (RFC 8725, 2.1 and 3.1). */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');

/** The accepted difference between the issuer's clock and ours, s (RFC 7519, 4.1.4). */
const LEEWAY = 30;

/** Finds the owner of a bearer token; undefined if the token is not valid. */
export function bearerTokenOwners({
  issuer,
  audience,
  scopes,
  keys,
  clock,
  log,
}: BearerTokenParts): BearerTokenOwner {
  return async (token, caller) => {
    try {
      // Only these two parameters wait for keys: the whole header may take many times the memory of its text.
      const header = namedKey(token);
      if (header) await keys.ready(header, caller);
      const { payload } = await jwtVerify(token, keys.find, {
        issuer,
        audience,
        requiredClaims: ['exp'],
        algorithms: ALGORITHMS,
        clockTolerance: LEEWAY,
        currentDate: new Date(clock.now()),
      });
      const claimed = scopesOf(payload);
      return {
        name: `sub:${typeof payload.sub === 'string' ? payload.sub : ''}`,
        scopes: new Set(scopes.filter((scope) => claimed.includes(scope))),
      };
    } catch (error) {
      // Logs only the kind of fault: messages may contain a piece of the token.
      const { code, claim } = error as { code?: string; claim?: string };
      const { requestId } = caller;
      if (error instanceof KeysUnavailable) {
        log.info({ requestId, code }, 'a bearer token was not checked');
        return { retrySeconds: error.retrySeconds };
      }
      if (caller.hasLeft) throw error;
      log.info({ requestId, code, claim }, 'a bearer token was refused');
      return undefined;
    }
  };
}

/** Names the key that signed a token; undefined if no key can have done so. */
function namedKey(token: string): { alg: string; kid?: string } | undefined {
  try {
    const { alg, kid } = decodeProtectedHeader(token);
    if (alg === undefined || !ALGORITHMS.includes(alg)) return undefined;
    return { alg, ...(typeof kid === 'string' && { kid }) };
  } catch {
    return undefined;
  }
}

/** `scope` is the standard claim (RFC 8693, 4.2); some issuers write `scp`, as a text or as a list. */
function scopesOf({ scope, scp }: JWTPayload): readonly unknown[] {
  return [scope, scp].flatMap((claim) =>
    typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [],
  );
}

/** Returns undefined for a token that is not valid, and in how many seconds one that cannot be checked now may be. */
export type BearerTokenOwner = (
  token: string,
  caller: Pick<Exchange, 'requestId' | 'hasLeft' | 'signal'>,
) => Promise<Caller | { readonly retrySeconds: number } | undefined>;

export interface TrustedIssuer {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  /** The scopes that have a meaning here. Others are ignored. */
  readonly scopes: readonly string[];
}
