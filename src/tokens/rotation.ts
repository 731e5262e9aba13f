import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { ConnectToTokenEndpoint, TokenEndpoint } from './exchange.ts';
import type { TokenPair } from './token-set.ts';
import type { StoredTokens, TokenStore } from './token-store.ts';

/** The newest pair that this process knows, and the exchange that gives the next one. */
export interface Rotation {
  readonly head: Head | undefined;
  /** Milliseconds since the refresh that gave the head. */
  age(): number;
  /** Milliseconds until the head should be rotated ahead of its expiry; 0 or less when it is time. */
  untilDue(): number;
  /** Takes over what the store holds, when it is newer. */
  adopt(stored: StoredTokens): void;
  /** Another process may have rotated or imported. */
  lookAtStore(): Promise<void>;
  /** Resolves when no exchange is under way any more, however it ended. */
  settled(): Promise<void>;
  /** One exchange, however many ask. Belongs to the process: no caller's leaving ends it. */
  rotate(): Promise<Head>;
  /** No exchange is begun any more; one under way is waited for until its pair is saved. */
  stop(): Promise<void>;
}

export interface Head {
  readonly generation: number;
  readonly pair: TokenPair;
  readonly lost: boolean;
  /** Whether the service has taken this access token at least once, or may have before we knew it. */
  accepted: boolean;
}

type Published = Pick<StoredTokens, 'generation' | 'pair' | 'lost' | 'imported'>;

interface RotationParts {
  store: TokenStore;
  connect: ConnectToTokenEndpoint;
  clock: Clock;
  log: Logger;
  random?: () => number;
}

/** Longer than an answer may take, so that a live mark means an exchange that may still end well. */
const MARK_LIFE_MS = 150_000;
const WAIT_FOR_OTHERS_MS = 10_000;
const LOOK_AT_STORE_MS = 100;
const RETRY_SAVE_MS = 500;
const IDLE_MS = 30_000;

export function createRotation({
  store,
  connect,
  clock,
  log,
  random = Math.random,
}: RotationParts): Rotation {
  let head: (Head & { bornAt: number; rotateAtAge: number }) | undefined;
  let inFlight: Promise<Head> | undefined;
  let saving: Promise<void> | undefined;
  let stopped = false;
  let quiet: { until: number; error: Error } | undefined;

  const age = () => (head ? clock.elapsed() - head.bornAt : 0);

  return {
    get head() {
      return head;
    },
    age,
    untilDue: () => (head && !head.lost && !saving ? head.rotateAtAge - age() : IDLE_MS),
    adopt,
    lookAtStore,
    settled: async () => {
      await inFlight?.catch(() => {});
    },
    rotate: () => {
      inFlight ??= rotateOnce().finally(() => {
        inFlight = undefined;
      });
      return inFlight;
    },
    stop: async () => {
      stopped = true;
      await inFlight?.catch(() => {});
      await saving;
    },
  };

  function adopt(stored: StoredTokens): void {
    if (head && stored.generation < head.generation) return;
    if (head && stored.generation === head.generation) {
      head = { ...head, lost: stored.lost };
      return;
    }
    // The wall clock may have been set back while we were away; an age is never negative.
    publish(stored, Math.max(0, clock.now() - stored.savedAt));
  }

  function publish(next: Published, ageMs: number): void {
    const { generation, pair, lost, imported } = next;
    const early = (2 / 3) * (1 - random() / 20);
    const life = Math.min(pair.expiresIn, pair.refreshTokenExpiresIn) * 1000;
    head = {
      generation,
      pair,
      lost,
      // A set that an earlier process used, or that lay behind its link: its expiry is believed at once.
      accepted: imported || !head,
      bornAt: clock.elapsed() - ageMs,
      // At once after an import: that kills the link, which is a secret, and starts both lifetimes now.
      rotateAtAge: imported ? 0 : life * early,
    };
  }

  async function lookAtStore(): Promise<void> {
    const stored = await store.read();
    if (stored) adopt(stored);
  }

  async function rotateOnce(): Promise<Head> {
    const from = currentHead();
    if (saving) throw unsavedError();
    await lookAtStore();
    if (currentHead().generation > from.generation) return currentHead();
    if (currentHead().lost) throw lostError();
    if (quiet && clock.elapsed() < quiet.until) throw quiet.error;
    const endpoint = await reach();
    try {
      const attempt = randomUUID();
      if (!(await mark(from.generation, attempt))) return await waitForOthers(from.generation);
      if (stopped) {
        await store.unmark(attempt);
        throw stoppingError();
      }
      return await settle(from, attempt, await endpoint.exchange(from.pair.refreshToken));
    } finally {
      await endpoint.close();
    }
  }

  function currentHead(): Head {
    if (stopped) throw stoppingError();
    if (!head) throw codedError('TOKENS_MISSING', 'No token set was imported yet.');
    return head;
  }

  async function reach(): Promise<TokenEndpoint> {
    try {
      return await connect();
    } catch (cause) {
      throw pause(1, unreachableError(cause));
    }
  }

  async function mark(generation: number, attempt: string): Promise<boolean> {
    const now = clock.now();
    try {
      return await store.mark({ generation, attempt, until: now + MARK_LIFE_MS, now });
    } catch (error) {
      throw pause(
        1,
        codedError(
          'UPSTREAM_UNREACHABLE',
          'The access token cannot be renewed now, because the token store cannot be written. Nothing was lost. ' +
            'The operator has to look at the disk that holds the store.',
          { cause: error },
        ),
      );
    }
  }

  async function waitForOthers(generation: number): Promise<Head> {
    const until = clock.elapsed() + WAIT_FOR_OTHERS_MS;
    while (clock.elapsed() < until) {
      await clock.sleep(LOOK_AT_STORE_MS);
      await lookAtStore();
      if (currentHead().generation > generation) return currentHead();
    }
    throw codedError(
      'UPSTREAM_UNREACHABLE',
      'A renewal of the access token is under way or ended without a clear answer. Try again in a few minutes.',
    );
  }

  async function settle(
    from: Head,
    attempt: string,
    outcome: Awaited<ReturnType<TokenEndpoint['exchange']>>,
  ): Promise<Head> {
    switch (outcome.kind) {
      case 'pair':
        await keep(from, attempt, outcome.pair);
        return head!;
      case 'invalid-grant':
        await lookAtStore();
        if (head!.generation > from.generation) return head!;
        await store.lose(from.generation);
        await lookAtStore();
        log.fatal({ generation: from.generation }, lostError().message);
        throw lostError();
      case 'rate-limited':
        await store.unmark(attempt);
        throw pause(
          outcome.retryAfter,
          codedError(
            'UPSTREAM_RATE_LIMITED',
            `The recruiting service asks to wait ${outcome.retryAfter} s before the access token is renewed.`,
            { extensions: { retryAfter: outcome.retryAfter } },
          ),
        );
      case 'refused':
        await store.unmark(attempt);
        throw pause(
          60,
          codedError(
            'UPSTREAM_UNAUTHORIZED',
            `The token endpoint of the recruiting service answered ${outcome.status}. Check RECRUITING_URL and what stands between.`,
          ),
        );
      case 'unsent':
        await store.unmark(attempt);
        throw pause(1, unreachableError());
      case 'uncertain':
        // The mark stays: whether the refresh token is spent is unknown, and nothing is guessed.
        log.error({ attempt, generation: from.generation, why: outcome.why }, 'rotation uncertain');
        throw codedError(
          'UPSTREAM_UNREACHABLE',
          'The recruiting service gave no clear answer to the renewal of the access token. Try again in a few minutes.',
        );
    }
  }

  /** Saved before first use. When saving fails, the pair is served from memory and saved as soon as that works. */
  async function keep(from: Head, attempt: string, pair: TokenPair): Promise<void> {
    const generation = from.generation + 1;
    const at = clock.now();
    const next = { generation, pair, lost: false, imported: false };
    const save = () => store.save({ generation: from.generation, attempt, pair, at });
    try {
      await save();
    } catch (error) {
      log.fatal({ err: error, generation }, 'the new token pair could not be saved; retrying');
      saving = saveUntilDone(save).finally(() => {
        saving = undefined;
        log.info({ generation }, 'the new token pair is saved now');
      });
    }
    publish(next, 0);
    log.info({ generation, expiresIn: pair.expiresIn }, 'access token rotated');
  }

  async function saveUntilDone(save: () => Promise<void>): Promise<void> {
    for (;;) {
      await clock.sleep(RETRY_SAVE_MS);
      const saved = await save().then(
        () => true,
        () => false,
      );
      if (saved) return;
    }
  }

  /** Callers who come within the next seconds get the same answer without another call. */
  function pause<E extends Error>(seconds: number, error: E): E {
    quiet = { until: clock.elapsed() + seconds * 1000, error };
    return error;
  }
}

function stoppingError() {
  return codedError('UPSTREAM_UNREACHABLE', 'The gateway is stopping. Send the request again.');
}

function unreachableError(cause?: unknown) {
  return codedError(
    'UPSTREAM_UNREACHABLE',
    'The recruiting service cannot be reached to renew the access token. Nothing was lost; try again shortly.',
    { cause },
  );
}

function unsavedError() {
  return codedError(
    'UPSTREAM_UNREACHABLE',
    'The access token has expired, and is not renewed before the pair of the last renewal is saved: ' +
      'the token store cannot be written. Try again in a few minutes.',
  );
}

export function lostError() {
  return codedError(
    'TOKENS_LOST',
    'The refresh token is spent, expired or revoked, so the recruiting service cannot be asked any more. ' +
      'Have an administrator make a new token in the personal account, set TOKEN_LINK to its link, and restart the gateway.',
  );
}
