import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { ConnectToTokenEndpoint } from './exchange.ts';
import { createRotation, lostError, type Rotation } from './rotation.ts';
import { readTokenLink, TokenLinkError } from './token-link.ts';
import type { TokenStore } from './token-store.ts';

/** One bearer token and the generation of the set that it belongs to. */
export interface AccessToken {
  readonly value: string;
  readonly generation: number;
}

/** Keeps one token set alive: rotates it ahead of its expiry, and once when the service says it expired. */
export interface TokenKeeper {
  /** The newest access token. Waits for nothing but a first import. @throws TOKENS_MISSING */
  accessToken(): Promise<AccessToken>;
  /**
   * What to do after a 401 with `detail`: the token to replay with, or undefined when no other token
   * would help. Rotates when `refused` is the newest and has expired.
   * @throws the coded error of a rotation that failed
   */
  afterRefusal(refused: AccessToken, detail: string): Promise<AccessToken | undefined>;
  /** The service took this token: from now on its expiry is believed. */
  accepted(token: AccessToken): void;
  /** Whether a set was ever present. */
  readonly present: boolean;
  /** Begins no further rotation, and waits until one under way is saved. */
  stop(): Promise<void>;
}

export interface TokenKeeperParts {
  store: TokenStore;
  connect: ConnectToTokenEndpoint;
  clock: Clock;
  log: Logger;
  /** The service that the set must belong to. */
  baseUrl: string;
  agent: string;
  /** Imported when the store is empty or its set is lost. */
  tokenLink: string | undefined;
  random?: () => number;
}

const LOOK_AGAIN_MS = 30_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 5 * 60_000;

/** @throws when the store cannot be read or belongs to another service: better not to start than to mix them */
export async function createTokenKeeper(parts: TokenKeeperParts): Promise<TokenKeeper> {
  const { store, clock, log, baseUrl, random = Math.random } = parts;
  const stored = await store.read().catch((cause: unknown) => {
    throw new Error(
      `The token store (${store.description}) cannot be read: ${(cause as Error).message}. It was left as it is. ` +
        'When it is damaged, move it away and import a new token with TOKEN_LINK.',
      { cause },
    );
  });
  if (stored && stored.baseUrl !== baseUrl) {
    throw new Error(
      `The token store (${store.description}) belongs to ${stored.baseUrl}, but RECRUITING_URL is ${baseUrl}. ` +
        'Give this service a store of its own with TOKEN_STORE, or correct RECRUITING_URL. The store was not changed.',
    );
  }
  const stopping = new AbortController();
  const rotation = createRotation(parts);
  if (stored) rotation.adopt(stored);
  if (parts.tokenLink === undefined && !stored) log.error(missingError().message);
  if (parts.tokenLink === undefined && stored?.lost) log.error(lostError().message);

  // Requests wait for the first try alone: a link that cannot be reached would hold them for ever.
  const firstTry = importLink();
  const keeping = firstTry
    .then(importUntilDone)
    .then(keepFresh)
    .catch((error: unknown) => {
      if (!stopping.signal.aborted) log.fatal({ err: error }, 'token rotation stopped');
    });

  return {
    accessToken: async () => {
      if (!rotation.head) await firstTry;
      return tokenOf(head());
    },
    accepted: ({ generation }) => {
      if (rotation.head?.generation === generation) rotation.head.accepted = true;
    },
    afterRefusal: async (refused, detail) => {
      if (head().generation === refused.generation) {
        await rotation.lookAtStore();
        // An exchange under way may be the very reason: some services end the old token with it.
        if (detail !== 'token_expired') await rotation.settled();
      }
      const newest = head();
      if (newest.generation > refused.generation) return tokenOf(newest);
      // Of a lost set nothing else is to be said, whatever the service says of its access token.
      if (newest.lost) return tokenOf(await rotation.rotate());
      if (detail !== 'token_expired') return undefined;
      // Never accepted, and refused as expired in its first half: rotating again would only loop.
      if (!newest.accepted && rotation.age() < newest.pair.expiresIn * 500) return undefined;
      return tokenOf(await rotation.rotate());
    },
    get present() {
      return rotation.head !== undefined;
    },
    stop: async () => {
      stopping.abort();
      await rotation.stop();
      await keeping;
    },
  };

  function head(): NonNullable<Rotation['head']> {
    if (rotation.head) return rotation.head;
    throw missingError();
  }

  /** Resolves to whether that was all there is to do. */
  async function importLink(): Promise<boolean> {
    const { tokenLink, agent } = parts;
    if (tokenLink === undefined) return true;
    try {
      await rotation.lookAtStore();
      const found = rotation.head;
      if (found && !found.lost) {
        log.warn(
          { store: store.description },
          'TOKEN_LINK is ignored: the token store holds a set that is not known to be lost. Remove TOKEN_LINK; ' +
            'to replace the set all the same, stop the gateway and move the store away first.',
        );
        return true;
      }
      const [linkHost, host] = [new URL(tokenLink).host, new URL(baseUrl).host];
      const pair = await readTokenLink(tokenLink, agent);
      const after = found?.generation ?? 0;
      const imported = await store.import({ baseUrl, pair, at: clock.now(), after });
      if (!imported) return false;
      rotation.adopt(imported);
      log.info({ tokenSet: pair.name, service: host, linkHost }, 'token set imported');
      return true;
    } catch (error) {
      if (error instanceof TokenLinkError) {
        log.error(error.passing ? `${error.message} It is tried again.` : error.message);
        return !error.passing;
      }
      log.error({ err: error }, 'the token set could not be imported');
      return false;
    }
  }

  async function importUntilDone(done: boolean): Promise<void> {
    for (let failures = 1; !done; failures += 1) {
      await clock.sleep(backoff(failures), stopping.signal);
      done = await importLink();
    }
  }

  async function keepFresh(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted;) {
      try {
        const wait = rotation.untilDue();
        if (wait <= 0) {
          await rotation.rotate();
        } else {
          // Looks again often instead of sleeping long: a timer of 120 days fires at once, and one that was
          // set before the machine was suspended fires late.
          await clock.sleep(Math.min(wait, LOOK_AGAIN_MS), stopping.signal);
          if (!rotation.head || rotation.head.lost) await rotation.lookAtStore();
        }
        failures = 0;
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        log.error({ err: error, failures }, 'the access token could not be rotated');
        await clock.sleep(backoff(failures), stopping.signal);
      }
    }
  }

  function backoff(failures: number): number {
    const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
    return longest * (0.5 + random() / 2);
  }
}

function missingError() {
  return codedError(
    'TOKENS_MISSING',
    'No token set was imported yet. Have an administrator make a token in the personal account of the recruiting service, ' +
      'set TOKEN_LINK to the link it shows, and restart the gateway. When that was done, its log says what is wrong with the link.',
  );
}

function tokenOf(head: { generation: number; pair: { accessToken: string } }): AccessToken {
  return { value: head.pair.accessToken, generation: head.generation };
}
