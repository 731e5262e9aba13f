import { createAnsweredPairs } from './answered-pair.ts';
import { createBlockedRefresh } from './blocked-refresh.ts';
import { createExchangeAttempt, type AttemptParts } from './exchange-attempt.ts';
import {
  isFinal,
  isOfPair,
  isSamePair,
  isUncertain,
  lossOf,
  lostAfter,
  unansweredOf,
  type AccessToken,
  type HeldTokens,
  type UncertainTokens,
} from './held-tokens.ts';
import { createPairSaver } from './pair-saver.ts';
import { createSendingTimes } from './sending-times.ts';
import type { CheckAccess } from './service/auth-check.ts';
import { ANSWERS_MS, type BoundedStore } from './store/token-store.ts';
import {
  busyElsewhereError,
  earlyOrSpentError,
  isEarlyOrSpent,
  lostError,
  missingError,
  movedError,
  stoppingError,
  uncertainError,
  unsavedError,
  unwritableStoreError,
} from './token-errors.ts';
import { createTokenSync, growingPauses } from './token-sync.ts';

export type TokenRefresher = ReturnType<typeof createTokenRefresher>;

export interface RefresherParts extends AttemptParts {
  store: BoundedStore;
  checkAccess: CheckAccess;
}

const WAIT_FOR_OTHERS_MS = 10_000;
const LOOKS = { shortest: 100, longest: 1_000 };
/** Clocks of the servers of one service differ by less, as a rule. */
const SKEW_MS = 5_000;
const IDLE_MS = 30_000;
const IDLE_WITHOUT_TOKENS_MS = 5_000;
const BUSY_MS = 1_000;
const LONGEST_BUSY_MS = 5_000;
const LONGEST_PATIENCE_S = 30 * 60;

/** Exchanges the newest pair that this process knows for the next one, when that is due or requests need it. */
export function createTokenRefresher(parts: RefresherParts) {
  const { store, clock, log } = parts;
  const stopping = new AbortController();
  const saver = createPairSaver(parts);
  const answers = createAnsweredPairs(parts);
  const blocked = createBlockedRefresh(parts);
  const held = createTokenSync(parts, { saver, answers, blocked });
  const times = createSendingTimes({ clock, log, checkAccess });
  const others = { saver, held, times, blocked, stopping: stopping.signal };
  const attempt = createExchangeAttempt(parts, others);
  let inFlight: Promise<HeldTokens> | undefined;
  let notRenewed = false;
  /** The last failure: until then, that pair is not exchanged. */
  let pausedBy: { of: HeldTokens; until: number; error: Error } | undefined;

  return {
    /** The newest pair that this process knows. */
    get tokens() {
      return held.tokens;
    },
    /** A pair that was received is not in the store yet. */
    get unsaved() {
      return saver.pending !== undefined;
    },
    /** How often the store was found to be replaced, or gone. */
    get storeLosses() {
      return held.storeLosses;
    },
    /** The last answer had no new refresh token, or no access token. */
    get notRenewed() {
      return notRenewed;
    },
    /** A refresh is due and cannot begin. */
    get blocked() {
      return blocked.is;
    },
    /** Pairs in answers that were not understood. */
    answers,
    adopt: held.adopt,
    sync: held.sync,
    /** Reports that the service accepted this access token: from now on its expiry is believed. */
    accepted: (token: AccessToken): void => {
      const { tokens } = held;
      if (!tokens || (tokens.accepted && !tokens.expired) || !isOfPair(token, tokens)) return;
      held.change({ accepted: true, expired: false });
    },
    /** Reports that the service refused this access token as expired. */
    expired: (token: AccessToken): void => {
      const { tokens } = held;
      if (tokens && isOfPair(token, tokens)) held.change({ expired: true });
    },
    /** Resolves when no exchange is under way, here or in another process; after 10 s in any case. */
    settled: async (): Promise<void> => {
      await inFlight?.catch(() => {});
      const until = clock.elapsed() + WAIT_FOR_OTHERS_MS;
      const pauseBetween = growingPauses(clock, LOOKS);
      while (isExchanging() && clock.elapsed() < until) {
        await pauseBetween(() => !isExchanging());
        await held.sync();
      }
    },
    refresh,
    /** Milliseconds until the next step is due. */
    untilDue: (): number => {
      const { tokens } = held;
      if (!tokens || isFinal(tokens) || lossOf(tokens, clock)) return IDLE_WITHOUT_TOKENS_MS;
      if (saver.pending) return IDLE_MS;
      if (tokens.state.kind === 'refreshing') {
        // Less and less often: that process may have been stopped, and keeps its claim until its end.
        return Math.min(LONGEST_BUSY_MS, Math.max(BUSY_MS, blocked.busyMs));
      }
      return Math.max(times.dueAt(tokens), pauseNow()?.until ?? 0) - clock.elapsed();
    },
    /** Milliseconds until the refresh token is sent once more; undefined when it is not uncertain. */
    untilReplay: (): number | undefined =>
      isUncertain(held.tokens) ? times.replayDueAt(held.tokens) - clock.elapsed() : undefined,
    /**
     * Does what is due: refreshes ahead of the expiry, or after it where the service refuses earlier, or decides about an
     * uncertain exchange.
     */
    advance: async (): Promise<void> => {
      const { tokens } = held;
      if (tokens && !(await times.maySend(tokens))) return;
      await refresh().catch((error: unknown) => {
        // It was reported once.
        if (!isEarlyOrSpent(error)) throw error;
      });
    },
    /** Begins no further exchange, and waits until the pair of one under way is safe. */
    stop: async (): Promise<void> => {
      stopping.abort();
      store.hurry();
      await inFlight?.catch(() => {});
      await saver.finish();
      await held.secure();
      await saver.finish();
    },
  };

  /**
   * Exchanges the refresh token; all callers share one exchange. It belongs to the process: a caller that disconnects
   * does not end it. An uncertain refresh token is sent once more.
   *
   * @param evenIfEnded also if it has ended by the clock, which may be wrong
   */
  function refresh(evenIfEnded = false): Promise<HeldTokens> {
    inFlight ??= exchangeOnce(evenIfEnded)
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) blocked.failed(error, held.tokens?.generation);
        throw error;
      })
      .finally(() => {
        inFlight = undefined;
      });
    return inFlight;
  }

  async function checkAccess(accessToken: string) {
    const verdict = await parts.checkAccess(accessToken);
    const isExpired = verdict.kind === 'refused' && verdict.detail === 'token_expired';
    if (isExpired && held.tokens?.pair.accessToken === accessToken) held.change({ expired: true });
    return verdict;
  }

  async function exchangeOnce(evenIfEnded: boolean): Promise<HeldTokens> {
    const from = exchangeable(evenIfEnded);
    const until = clock.elapsed() + WAIT_FOR_OTHERS_MS;
    const pauseBetween = growingPauses(clock, LOOKS);
    for (;;) {
      await held.recoverPair();
      const newest = exchangeable(evenIfEnded);
      if (!isSamePair(newest, from)) return newest;
      // It became uncertain while this waited for another process: a caller does not decide that it is sent again.
      const isNewlyUncertain = isUncertain(newest) && !isUncertain(from);
      const isNewlyRefused = newest.refusedEarly && !from.refusedEarly;
      if ((isNewlyUncertain || isNewlyRefused) && !(await times.maySend(newest))) {
        throw isNewlyRefused ? earlyOrSpentError() : uncertainError();
      }
      const pausing = pauseNow();
      if (pausing) throw pausing.error;
      const mayClaim = newest.state.kind !== 'refreshing';
      if (mayClaim && (await othersAreAsked())) {
        await newsOf(newest, ANSWERS_MS);
        continue;
      }
      const done = mayClaim ? await exchange(newest) : undefined;
      if (done) return done;
      if (clock.elapsed() >= until) throw busyElsewhereError();
      await pauseBetween(() => hasChanged(newest));
    }
  }

  /**
   * The store may be an older copy: its server has lost commits in a failover, or a backup was put in its place, and this
   * process has not seen what came after. Then its refresh token is spent, and a process that runs may have the newest
   * pair.
   */
  async function othersAreAsked(): Promise<boolean> {
    try {
      return await store.askOthers();
    } catch (cause) {
      throw unwritableStoreError(cause);
    }
  }

  async function newsOf(from: HeldTokens, patienceMs: number): Promise<void> {
    const until = clock.elapsed() + patienceMs;
    const pauseBetween = growingPauses(clock, LOOKS);
    const isOver = () => stopping.signal.aborted || !held.isHeld(from);
    while (clock.elapsed() < until && !isOver()) {
      await pauseBetween(isOver);
      await held.sync();
    }
  }

  function isExchanging(): boolean {
    return held.tokens?.state.kind === 'refreshing';
  }

  function hasChanged(from: HeldTokens): boolean {
    const { tokens } = held;
    return !isSamePair(tokens!, from) || tokens!.state.kind !== from.state.kind;
  }

  /** The tokens that are held, if their refresh token may be sent. */
  function exchangeable(evenIfEnded: boolean): HeldTokens {
    const { tokens } = held;
    if (stopping.signal.aborted) throw stoppingError();
    if (!tokens) throw missingError();
    if (tokens.state.kind === 'moved') throw movedError(tokens.state.to);
    const loss = lossOf(tokens, clock);
    if (loss && !(loss === 'ended' && evenIfEnded)) throw lostError(loss);
    if (saver.pending) throw unsavedError(saver.why);
    return tokens;
  }

  /** @returns undefined when another process was first */
  async function exchange(from: HeldTokens): Promise<HeldTokens | undefined> {
    const result = await attempt(from);
    switch (result.kind) {
      case 'kept':
        // A set that was imported meanwhile is newer; of two pairs of one generation the store has chosen one.
        if (held.tokens!.set === from.set && !result.isSecond) {
          held.publish(result.next, result.bornAt);
        } else await held.sync();
        notRenewed = result.next.saved.outcome !== 'rotated';
        if (from.refusedEarly && !from.refusesEarly) log.info(REFUSES_EARLY);
        log.info({ generation: held.tokens!.generation }, 'access token refreshed');
        return held.tokens!;
      case 'overtaken':
        return undefined;
      case 'early-or-spent': {
        const { state, expired: wasExpired } = held.tokens!;
        if (!held.isHeld(from)) return held.tokens!;
        if (!isFinal(held.tokens!)) {
          const unanswered = unansweredOf(state);
          const refused = { kind: 'early-or-spent', unanswered } as const;
          const expired = result.hasExpired;
          held.change({ refusedEarly: true, expired, state: refused });
        }
        const done = result.hasExpired ? await exchangeOnceMore(from) : undefined;
        if (done) return done;
        // Otherwise a request that meets `token_expired` is news, also within the next seconds.
        if (wasExpired) throw pause(times.patience(from), earlyOrSpentError());
        throw earlyOrSpentError();
      }
      case 'lost': {
        if (await isWithdrawn(from)) return held.tokens!;
        const { state } = held.tokens!;
        const lost = held.change({
          refusedEarly: false,
          state: state.kind === 'lost' ? state : lostAfter(unansweredOf(state)),
        });
        throw lostError(lossOf(lost, clock)!);
      }
      case 'uncertain': {
        if (!held.isHeld(from)) return held.tokens!;
        const unanswered = unansweredOf(from.state) + 1;
        const state = { kind: 'uncertain', unanswered, attempt: result.attempt } as const;
        if (!isFinal(held.tokens!)) held.change({ state });
        const tokens = { ...held.tokens!, state };
        const { generation } = from;
        log.error(
          { trouble: 'uncertain', generation, why: result.why },
          'refresh uncertain: no clear answer',
        );
        return resolve(tokens);
      }
      case 'postponed':
        throw pause(result.seconds, result.error);
    }
  }

  /** Some seconds after the expiry, since clocks of the service may differ. */
  async function exchangeOnceMore(from: HeldTokens): Promise<HeldTokens | undefined> {
    await newsOf(from, SKEW_MS);
    if (stopping.signal.aborted) throw stoppingError();
    return held.isHeld(from) ? exchange(held.tokens!) : held.tokens!;
  }

  /** An import that was believed while its access token worked, and is lost now: the set before it may be in use again. */
  async function isWithdrawn({ set, generation, imported, refusedEarly }: HeldTokens) {
    if (!imported || !refusedEarly) return false;
    if (!(await store.withdraw(set).catch(() => false))) return false;
    log.error({ generation }, WITHDRAWN);
    await held.sync();
    return held.tokens!.set !== set;
  }

  /**
   * Sends the refresh token once more at once if the access token does not work either, so that nothing is left to
   * lose. Only after the first uncertain exchange: later ones wait longer each time.
   */
  async function resolve(from: UncertainTokens): Promise<HeldTokens> {
    await held.recoverPair().catch(() => {});
    if (!held.isHeld(from)) return held.tokens!;
    if (from.state.unanswered > 1) throw pause(patienceAfter(from), uncertainError());
    const replay = !stopping.signal.aborted && (await times.maySend(from).catch(() => false));
    const done = replay ? await exchange(held.tokens!) : undefined;
    if (done) return done;
    throw uncertainError();
  }

  /** Remembers the error: callers within the next seconds get it without another request. */
  function pause<E extends Error>(seconds: number, error: E): E {
    pausedBy = { of: held.tokens!, until: clock.elapsed() + seconds * 1000, error };
    return error;
  }

  function pauseNow() {
    if (!pausedBy || !held.isHeld(pausedBy.of)) return undefined;
    return clock.elapsed() < pausedBy.until ? pausedBy : undefined;
  }
}

/** Seconds until an uncertain refresh token is sent again, after several times. */
function patienceAfter({ state: { unanswered } }: UncertainTokens): number {
  return Math.min(LONGEST_PATIENCE_S, 2 ** Math.max(0, unanswered - 2));
}

const WITHDRAWN =
  'The recruiting service refuses the refresh token of the import for good: it was spent before, or revoked. So the import was taken ' +
  'back, and the token set that it had replaced is in use again. Have an administrator make a new token, and import its link.';

const REFUSES_EARLY =
  'The recruiting service accepted a refresh token that it had refused while the access token worked: it exchanges none ' +
  'before the access token has expired. This is remembered in the token store, and from now on refreshes wait for the expiry.';
