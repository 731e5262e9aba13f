import { OperatorMistake } from '../errors.ts';
import {
  accessTokenOf,
  isFinal,
  isOfPair,
  isUncertain,
  lossOf,
  type AccessToken,
  type HeldTokens,
} from './held-tokens.ts';
import { createTokenRefresher, type RefresherParts } from './token-refresher.ts';
import { createTokenSync } from './token-sync.ts';
import {
  blockedBy,
  lostError,
  missingError,
  movedError,
  slowRefreshError,
} from './token-errors.ts';
import { adviceOn, isKeyMissing } from './store/store-advice.ts';
import {
  boundStore,
  StoreNewerError,
  StoreUnavailableError,
  upgradeNotice,
  type TokenStore,
} from './store/token-store.ts';
import { createEndWarnings, healthOf, type TokenHealth } from './token-health.ts';
import { createLinkImport, type TokenLink } from './token-import.ts';

/*
 * How a single-use token survives a crash
 *
 * The service accepts a refresh token exactly once, and answers with the next pair. A pair that is received and then
 * forgotten is gone: only an administrator can make another. So at each moment one of three places knows where the
 * newest pair is: the store, the rescue file, or a claim in the store that says "a process may have sent this token".
 *
 *           connect       claim        send once       save        use
 *   ----------|------------|-------------|-------------|-----------|------>
 *    what a crash here leaves behind:
 *    nothing              |  the claim: the token may  |  the new pair, which
 *                         |  be spent (uncertain)      |  the next start reads
 *
 * Connect. DNS, TCP and TLS come first, so that the failures that are common happen before anything is at stake.
 *
 * Claim. One durable transaction records "attempt A may send the refresh token of generation n". The store refuses it
 * while another process holds a claim. If it cannot be written, nothing is sent.
 *
 * Send once. No retry, no redirect, and not after 25 seconds: a process that was suspended with its claim must not wake
 * up and send. The exchange belongs to the process; a caller that disconnects does not end it. All callers share it.
 *
 * Save before use. The pair is inserted even if the claim is no longer ours: one refresh token yields one pair, so it
 * cannot be a wrong one. If the store does not take it within a second, the pair goes to the rescue file, is used from
 * memory and is saved again until that works. The next start, and `tokens recover`, save what a rescue file holds.
 *
 * Uncertain. No clear answer came (time-out, reset, 5xx, or the process ended): the claim stays, and nothing is guessed.
 * Whatever bytes arrived are kept in the rescue folder, and searched for a pair. While the old access token
 * works, it is used; the refresh token is sent once more shortly before it expires, or at once if it does not work. A
 * 200 is saved as usual. `invalid_grant` means lost, after waiting for a pair that another process may still save.
 *
 * Early or spent. Some services refuse every exchange before the access token has expired, with the answer for a spent
 * token. So a refusal is believed only if the access token was known not to work when the refresh token was sent.
 * Otherwise the claim ends, everything goes on, and the refresh token is sent once more after the expiry, and a last time
 * five seconds later. That it was accepted then is remembered in the store: from then on, no process sends one before
 * the expiry.
 *
 * Who writes what. Only the holder of a claim sends. Any process may save a pair that was received, because saving the
 * same pair twice changes nothing and the generation only grows. Only the gateway and the commands that change the
 * tokens write rescue files and save from them; `tokens status` and `tokens check` write nothing. On an error, nothing
 * is deleted or overwritten. A store that was replaced by an older copy is given the newest pair before it is used. A
 * process that cannot tell, because it has just started or the database server was, asks the others before it claims.
 *
 * Read back. A store may be damaged while a gateway runs: dropped, emptied, altered, or replaced. As soon as it answers
 * and cannot be read, the newest pair goes to the rescue file; and a process ends only when it has read its pair back from
 * the store, or has left it in the rescue file. That file is emptied only after the pair was read back, as a start reads
 * it: a save that succeeded may have gone into a store that was replaced since.
 *
 * The states are in held-tokens.ts, the steps and what follows each result in token-refresher.ts, saving in pair-saver.ts,
 * when a token that is uncertain or was refused may be sent in sending-times.ts, and what is read from the store in
 * token-sync.ts.
 */

/** Keeps one token set alive: refreshes it ahead of its expiry, and once when the service reports that it expired. */
export interface TokenKeeper {
  /** The newest access token, or a promise of it until the first import is over. @throws TOKENS_MISSING */
  accessToken(): AccessToken | Promise<AccessToken>;
  /**
   * The token to send a request again with after a 401 with `detail`, or undefined if no other token would help.
   * Refreshes if `refused` is the newest and has expired.
   *
   * @throws the coded error of a refresh that failed
   */
  afterRefusal(refused: AccessToken, detail: string): Promise<AccessToken | undefined>;
  /** Reports that the service accepted this token: from now on its expiry is believed. */
  accepted(token: AccessToken): void;
  /** Reports that the service refused this token, and that no newer one helps: it is probably revoked. */
  refused(token: AccessToken): void;
  /** Whether the service refused the newest token, and has not accepted it since. */
  readonly unauthorized: boolean;
  /** Whether there is a set, or was one. */
  readonly present: boolean;
  /** Name of the set in use. */
  readonly set: string | undefined;
  /** For metrics. Reads neither the store nor the service. */
  health(): TokenHealth | undefined;
  /** Starts no more refreshes, and waits until the pair of a running one is safe. */
  stop(): Promise<void>;
}

export interface TokenKeeperParts extends Omit<RefresherParts, 'store'> {
  store: TokenStore;
  /** Imported if the store is empty or its set is lost. */
  link: TokenLink | undefined;
}

const SYNC_MS = 30_000;
/** How long a caller waits for a refresh, about as long as clients wait for an answer. An exchange may take longer. */
const PATIENCE_MS = 30_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 5 * 60_000;
const FRESH_MS = 30_000;
const LONGEST_FRESH_MS = 30 * 60_000;
const NONE_RENEWED = { generation: 0, renewals: 0 };

/**
 * A store that is unavailable now, such as a database server that is down, is read as soon as it is back.
 *
 * @throws Error for the operator if the store cannot be read, or belongs to another service
 */
export async function createTokenKeeper(unbounded: TokenKeeperParts): Promise<TokenKeeper> {
  const parts = { ...unbounded, store: boundStore(unbounded.store, unbounded.clock) };
  const { store, clock, log, link, random = Math.random } = parts;
  const rescued = await parts.rescue?.saveInto(store, parts.baseUrl);
  let isUnavailable = false;
  const stored = await store.read().catch((cause: unknown) => {
    if (cause instanceof StoreUnavailableError) {
      reportUnavailable(cause);
      return null;
    }
    const what = `The token store (${store.description}) cannot be read: ${(cause as Error).message}. It was left as it is.`;
    if (isKeyMissing(cause)) throw new OperatorMistake(`${what} ${adviceOn(cause)}`, { cause });
    throw new Error(`${what} ${cause instanceof StoreNewerError ? adviceOn(cause) : IF_DAMAGED}`, {
      cause,
    });
  });
  // A store that was locked at the start is opened by the first read.
  for (const notice of store.notices) log.warn(notice);
  let isUpgradeLogged = false;
  logUpgrade();
  const stopping = new AbortController();
  let stopped: Promise<void> | undefined;
  /** The last token that was renewed before the service accepted it, and the number of such tokens in a row. */
  let fresh = NONE_RENEWED;
  const held = createTokenSync(parts);
  const refresher = createTokenRefresher(parts, held);
  const warnOfEnd = createEndWarnings(clock, log);
  if (stored) held.adopt(stored);
  if (stored && rescued) parts.rescue?.remove(rescued.newest, stored);
  const importLink = createLinkImport(parts, held);
  if (!link && !isUnavailable) logUnusable(held.tokens);
  store.watch?.(() => void poll());

  // Requests wait only for the first try: a link that is unavailable would hold them for ever.
  const firstTry = importLink();
  const keeping = keep().catch((error: unknown) => {
    if (!stopping.signal.aborted)
      log.fatal({ err: error }, 'the tokens are not refreshed any more');
  });

  return {
    accessToken: () => (held.tokens ? accessTokenOf(held.tokens) : patiently(firstToken())),
    accepted: (token) => {
      const { tokens } = held;
      if (fresh !== NONE_RENEWED && tokens && isOfPair(token, tokens)) fresh = NONE_RENEWED;
      held.accepted(token);
    },
    refused: held.refused,
    get unauthorized() {
      return held.tokens?.unauthorized === true;
    },
    afterRefusal: async (refused, detail) => {
      const newest = expectTokens();
      if (!isOfPair(refused, newest)) return accessTokenOf(newest);
      return patiently(newerThan(refused, detail));
    },
    get present() {
      return held.tokens !== undefined;
    },
    get set() {
      return held.tokens?.set;
    },
    health: () =>
      held.tokens &&
      healthOf(held.tokens, clock, {
        unsaved: held.saver.pending !== undefined,
        blocked: held.blocked.isBlocked,
        storeLosses: held.storeLosses,
      }),
    stop: () => (stopped ??= stop()),
  };

  async function firstToken(): Promise<AccessToken> {
    await firstTry;
    if (!held.tokens) await held.sync();
    return accessTokenOf(expectTokens());
  }

  async function newerThan(refused: AccessToken, detail: string): Promise<AccessToken | undefined> {
    await held.sync();
    // An exchange under way may be the reason: some services end the old access token with it.
    if (isOfPair(refused, expectTokens()) && detail !== 'token_expired') await refresher.settled();
    const newest = expectTokens();
    if (!isOfPair(refused, newest)) return accessTokenOf(newest);
    // Throws the error for a lost or moved set, whatever the detail of the 401.
    const isUnusable = isFinal(newest) || lossOf(newest, clock) !== undefined;
    if (detail === 'token_expired' && isUncertain(newest)) held.expired(refused);
    if (isUnusable || isUncertain(newest)) return accessTokenOf(await refresher.refresh());
    if (detail !== 'token_expired') return undefined;
    if (!newest.accepted && !mayRenewFresh(newest)) return undefined;
    held.expired(refused);
    return accessTokenOf(await refresher.refresh());
  }

  /**
   * Whether to renew a token that was refused as expired in the first half of its life, and was never accepted. The
   * next one may be refused too, so each renewal waits longer than the one before.
   */
  function mayRenewFresh({ generation, bornAt, pair }: HeldTokens): boolean {
    const before = fresh.generation === generation ? fresh.renewals - 1 : fresh.renewals;
    const wait = Math.min(LONGEST_FRESH_MS, FRESH_MS * 2 ** before, pair.expiresIn * 500);
    if (clock.elapsed() - bornAt < wait) return false;
    fresh = { generation, renewals: before + 1 };
    return true;
  }

  /** Limits how long a caller waits; the refresh goes on without it. */
  async function patiently<T>(work: Promise<T>): Promise<T> {
    const settled = new AbortController();
    const givenUp = clock.sleep(PATIENCE_MS, settled.signal).then(() => {
      throw slowRefreshError(PATIENCE_MS / 1000);
    });
    try {
      return await Promise.race([work, givenUp]);
    } finally {
      settled.abort();
    }
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await refresher.stop();
    await keeping;
  }

  function expectTokens(): HeldTokens {
    if (held.tokens) return held.tokens;
    throw missingError();
  }

  function logUnusable(tokens: HeldTokens | undefined): void {
    const loss = tokens && lossOf(tokens, clock);
    if (!tokens) log.error({ trouble: 'missing' }, missingError().message);
    else if (tokens.state.kind === 'moved') {
      log.error({ trouble: 'moved' }, movedError(tokens.state.to).message);
    } else if (loss) log.fatal({ trouble: 'lost' }, lostError(loss).message);
  }

  /** Not only at the start: the store may have been unavailable then, or in use by a process of an older version. */
  function logUpgrade(): void {
    const notice = isUpgradeLogged ? undefined : upgradeNotice(store);
    if (notice === undefined) return;
    isUpgradeLogged = true;
    log.info({ store: store.description }, notice);
  }

  async function keep(): Promise<void> {
    const done = await firstTry;
    await Promise.all([importUntilDone(done), keepFresh()]);
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
        if (held.tokens) warnOfEnd(held.tokens);
        const wait = refresher.untilDue();
        if (wait <= 0) {
          await refresher.advance();
          failures = 0;
          // Where nothing has changed, it is not done again at once.
          if (refresher.untilDue() <= 0) await clock.sleep(FIRST_RETRY_MS, stopping.signal);
        } else {
          // Short sleeps: a timer of 120 days fires at once, and one that was set before the machine was suspended
          // fires late.
          await clock.sleep(Math.min(wait, SYNC_MS), stopping.signal);
          await poll();
        }
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        // A blocked refresh was already reported, and stays so until it can begin.
        const isReported = held.blocked.isBlocked && blockedBy(error) !== undefined;
        const level = isReported ? 'debug' : 'error';
        log[level]({ err: error, failures }, 'the access token could not be refreshed');
        // The time at which an uncertain refresh token is sent once more is known, and a longer wait could miss it. A
        // step that is already due and fails, as on a full disk, is retried with backoff like everything else.
        const replay = refresher.untilReplay() ?? 0;
        const patience = backoff(failures);
        await clock.sleep(replay > 0 ? Math.min(replay, patience) : patience, stopping.signal);
      }
    }
  }

  /** Between two refreshes nothing is lost if the store cannot be read: it is logged once, and read again soon. */
  async function poll(): Promise<void> {
    // The store announces changes until it is closed.
    if (stopping.signal.aborted) return;
    try {
      await held.sync();
      if (isUnavailable) log.info('the token store can be read again');
      isUnavailable = false;
      logUpgrade();
    } catch (error) {
      if (!stopping.signal.aborted && !isUnavailable) reportUnavailable(error);
    }
  }

  function reportUnavailable(error: unknown): void {
    isUnavailable = true;
    log.error({ err: error, store: store.description }, UNAVAILABLE);
  }

  function backoff(failures: number): number {
    const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
    return longest * (0.5 + random() / 2);
  }
}

const IF_DAMAGED =
  'If it is damaged, run `tokens recover`, which makes missing tables again, saves the pair of a rescue file, and says ' +
  'what else helps. If no rescue file has the pair, import a new token with `tokens import <link>`.';

const UNAVAILABLE =
  'The token store cannot be read now. The gateway serves with the tokens that it has, if any, and tries again. Check the ' +
  'database server or the disk that holds the store.';
