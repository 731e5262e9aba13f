import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import {
  accessLeft,
  isFinal,
  isSamePair,
  isUncertain,
  lossOf,
  lostAfter,
  mayHaveSuccessor,
  nextPair,
  unansweredOf,
  type HeldTokens,
  type TokenSource,
  type UncertainTokens,
} from './held-tokens.ts';
import { createSendingTimes, type Refusal } from './sending-times.ts';
import type { ConnectToTokenEndpoint, ExchangeOutcome } from './service/exchange.ts';
import {
  ANSWERS_MS,
  CLAIM_LIFE_MS,
  type BoundedStore,
  type Claim,
  type Ending,
} from './store/token-store.ts';
import {
  busyElsewhereError,
  earlyOrSpentError,
  isEarlyOrSpent,
  lostError,
  MAKE_A_NEW_ONE,
  missingError,
  movedError,
  rateLimitedError,
  refusedError,
  stoppingError,
  uncertainError,
  unreachableError,
  unsavedError,
  unwritableStoreError,
} from './token-errors.ts';
import { pairNamedIn, type RawAnswer } from './token-set.ts';
import type { TokenSync, TokenSyncParts } from './token-sync.ts';

export type TokenRefresher = ReturnType<typeof createTokenRefresher>;

export interface RefresherParts extends TokenSyncParts {
  store: BoundedStore;
  connect: ConnectToTokenEndpoint;
  /** Called when the service refused the refresh token, before the wait for the pair of another process. */
  onRefused?: (waitSeconds: number) => void;
}

/** How one attempt to exchange a refresh token ended. The store has it too, unless it was unavailable. */
type AttemptResult =
  /** A pair was received, and is saved or held until it is. */
  | { kind: 'kept'; next: TokenSource; bornAt: number; isSecond: boolean }
  /** Another process was first: nothing was sent, or its pair has arrived. */
  | { kind: 'overtaken' }
  /** Refused while the access token worked: too early, or spent. `hasExpired`: the access token has expired since. */
  | { kind: 'early-or-spent'; hasExpired: boolean }
  | { kind: 'lost' }
  | { kind: 'uncertain'; attempt: string; why: string };

interface Attempt {
  readonly from: HeldTokens;
  readonly id: string;
  /** By `clock.elapsed()`. */
  readonly begunAt: number;
  /** Whether the access token was known to have expired then. */
  readonly knewExpired: boolean;
  /** The service's request id. */
  readonly requestId?: string;
}

/** How long after the claim the refresh token may be sent. The rest of the claim's life is for the answer. */
const SEND_WITHIN_MS = 25_000;
const WAIT_FOR_OTHERS_MS = 10_000;
const PAUSES = { shortest: 100, longest: 1_000 };
const PAUSES_AFTER_REFUSAL = { shortest: 1_000, longest: 5_000 };
/** The clocks of one service's servers usually differ by less. */
const SKEW_MS = 5_000;
const IDLE_MS = 30_000;
const IDLE_WITHOUT_TOKENS_MS = 5_000;
const BUSY_MS = 1_000;
const LONGEST_BUSY_MS = 5_000;
const LONGEST_PATIENCE_S = 30 * 60;

/** Exchanges the newest pair that this process knows for the next one, when it is due or a request needs it. */
export function createTokenRefresher(parts: RefresherParts, held: TokenSync) {
  const { store, rescue, connect, clock, log, replica, onExchange, onRefused } = parts;
  const stopping = new AbortController();
  const { saver, blocked } = held;
  const times = createSendingTimes({ clock, log, checkAccess });
  let inFlight: Promise<HeldTokens> | undefined;
  /** The last failure: that pair is not exchanged before `until`. */
  let pausedBy: { of: HeldTokens; until: number; error: Error } | undefined;

  return {
    /** Resolves when no exchange is under way, here or in another process; after 10 s in any case. */
    settled: async (): Promise<void> => {
      await inFlight?.catch(() => {});
      await syncUntil(() => !isExchanging(), WAIT_FOR_OTHERS_MS);
    },
    refresh,
    /** Milliseconds until the next step is due. */
    untilDue: (): number => {
      const { tokens } = held;
      if (!tokens || isFinal(tokens) || lossOf(tokens, clock)) return IDLE_WITHOUT_TOKENS_MS;
      if (saver.pending) return IDLE_MS;
      if (isExchanging()) {
        // Polls less and less often: that process may have been stopped, and keeps its claim until it ends.
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
        // Already reported.
        if (!isEarlyOrSpent(error)) throw error;
      });
    },
    /** Starts no more exchanges, and waits until the pair of a running one is safe. */
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
   * @param evenIfEnded whether to send a refresh token that has expired by the clock, which may be wrong
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
    const pauseBetween = growingPauses(clock, PAUSES);
    for (;;) {
      await held.recoverPair();
      const newest = exchangeable(evenIfEnded);
      if (!isSamePair(newest, from)) return newest;
      // It became uncertain during the wait for another process. A caller must not decide that it is sent again.
      const isNewlyUncertain = isUncertain(newest) && !isUncertain(from);
      const isNewlyRefused = newest.refusedEarly && !from.refusedEarly;
      if ((isNewlyUncertain || isNewlyRefused) && !(await times.maySend(newest))) {
        throw isNewlyRefused ? earlyOrSpentError() : uncertainError();
      }
      const pausing = pauseNow();
      if (pausing) throw pausing.error;
      const mayClaim = newest.state.kind !== 'refreshing';
      if (mayClaim && (await othersAreAsked())) {
        await waitForNews(newest, ANSWERS_MS);
        continue;
      }
      const done = mayClaim ? await exchange(newest) : undefined;
      if (done) return done;
      if (clock.elapsed() >= until) throw busyElsewhereError();
      await pauseBetween(() => {
        const { tokens } = held;
        return !isSamePair(tokens!, newest) || tokens!.state.kind !== newest.state.kind;
      });
    }
  }

  /**
   * Asks the other processes for the newest pair, if necessary. The store may be an older copy: its server lost commits
   * in a failover, or a backup was put in its place, and this process has not seen the later pairs. Then its refresh
   * token is spent, and another process may have the newest pair.
   */
  function othersAreAsked(): Promise<boolean> {
    return store.askOthers().catch((cause: unknown) => {
      throw unwritableStoreError(cause);
    });
  }

  function waitForNews(from: HeldTokens, patienceMs: number): Promise<void> {
    return syncUntil(() => stopping.signal.aborted || !held.isHeld(from), patienceMs);
  }

  async function syncUntil(isOver: () => boolean, patienceMs: number): Promise<void> {
    const until = clock.elapsed() + patienceMs;
    const pauseBetween = growingPauses(clock, PAUSES);
    while (clock.elapsed() < until && !isOver()) {
      await pauseBetween(isOver);
      await held.sync();
    }
  }

  function isExchanging(): boolean {
    return held.tokens?.state.kind === 'refreshing';
  }

  /** Returns the held tokens. @throws if their refresh token must not be sent */
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
    const result = await attemptOnce(from);
    switch (result.kind) {
      case 'kept':
        // A set that was imported since is newer; of two pairs of one generation the store has chosen one.
        if (held.tokens!.set === from.set && !result.isSecond) {
          held.publish(result.next, result.bornAt);
        } else await held.sync();
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
          held.change({ refusedEarly: true, expired: result.hasExpired, state: refused });
        }
        const done = result.hasExpired ? await exchangeOnceMore(from) : undefined;
        if (done) return done;
        // Otherwise a request that meets `token_expired` within the next seconds is news.
        if (wasExpired) throw pause(times.patience(from), earlyOrSpentError());
        throw earlyOrSpentError();
      }
      case 'lost': {
        if (await withdraw(from)) return held.tokens!;
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
        const facts = { trouble: 'uncertain', generation: from.generation, why: result.why };
        log.error(facts, 'refresh uncertain: no clear answer');
        return resolve({ ...held.tokens!, state });
      }
    }
  }

  /** Waits some seconds after the expiry first, because the clocks of the service's servers may differ. */
  async function exchangeOnceMore(from: HeldTokens): Promise<HeldTokens | undefined> {
    await waitForNews(from, SKEW_MS);
    if (stopping.signal.aborted) throw stoppingError();
    return held.isHeld(from) ? exchange(held.tokens!) : held.tokens!;
  }

  /** Takes back an import that was trusted while its access token worked, and is lost now. @returns whether it could */
  async function withdraw({ set, generation, imported, refusedEarly }: HeldTokens) {
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
    const { unanswered } = from.state;
    if (unanswered > 1) {
      throw pause(Math.min(LONGEST_PATIENCE_S, 2 ** (unanswered - 2)), uncertainError());
    }
    const replay = !stopping.signal.aborted && (await times.maySend(from).catch(() => false));
    const done = replay ? await exchange(held.tokens!) : undefined;
    if (done) return done;
    // The pair of the uncertain exchange arrived just before it was sent again.
    if (!held.isHeld(from)) return held.tokens!;
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

  /**
   * Connects, claims, sends once and saves, in this order. Nothing is sent if a step before that failed.
   *
   * @throws if nothing was spent
   */
  async function attemptOnce(from: HeldTokens): Promise<AttemptResult> {
    const endpoint = await connect().catch((cause: unknown) => {
      onExchange?.('unsent', 0);
      throw pause(1, unreachableError(cause));
    });
    try {
      const knewExpired = from.expired || accessLeft(from, clock) <= 0;
      const attempt = { from, id: randomUUID(), begunAt: clock.elapsed(), knewExpired };
      const claimed = await claim(attempt);
      if (!claimed) return { kind: 'overtaken' };
      blocked.began();
      if (mayHaveSuccessor(from) && (await hasLateAnswer(attempt))) return { kind: 'overtaken' };
      // A process that was suspended after the claim must not wake up and send.
      const maySend = () =>
        !stopping.signal.aborted && clock.elapsed() - attempt.begunAt < SEND_WITHIN_MS;
      const outcome: ExchangeOutcome = maySend()
        ? await endpoint.exchange(from.pair.refreshToken, maySend)
        : { kind: 'unsent' };
      return await conclude(attempt, claimed, outcome);
    } finally {
      await endpoint.close();
    }
  }

  async function claim({ from, id }: Attempt): Promise<Claim | undefined> {
    const { set, generation, state, refusedEarly: knowsRefusal } = from;
    const over = state.kind === 'uncertain' ? state.attempt : null;
    const seen = { over, knowsRefusal };
    const newClaim = { set, generation, attempt: id, ...seen, lifeMs: CLAIM_LIFE_MS, replica };
    return store.claim(newClaim).catch((error: unknown) => {
      // The claim may have been written all the same.
      held.endAttemptLater(id, { outcome: 'unsent', latencyMs: 0 });
      throw pause(1, unwritableStoreError(error));
    });
  }

  /**
   * Checks again after connecting, which took time: if the machine was suspended, the answer to the uncertain exchange
   * may have reached its process only now.
   */
  async function hasLateAnswer(attempt: Attempt): Promise<boolean> {
    try {
      await held.recoverPair();
      if (held.isHeld(attempt.from)) return false;
    } catch (error) {
      await close(attempt, 'unsent');
      throw error;
    }
    await close(attempt, 'unsent');
    return true;
  }

  async function conclude(
    sent: Attempt,
    claimed: Claim,
    outcome: ExchangeOutcome,
  ): Promise<AttemptResult> {
    const { requestId } = outcome;
    const attempt = requestId === undefined ? sent : { ...sent, requestId };
    // Before anything else can fail.
    if ('answer' in outcome) keepAnswer(attempt, outcome.answer);
    switch (outcome.kind) {
      case 'granted':
        return keep(attempt, outcome.grant);
      case 'invalid-grant':
        return refuse(attempt, claimed);
      case 'rate-limited':
        await close(attempt, outcome.kind);
        throw pause(outcome.retryAfter, rateLimitedError(outcome.retryAfter));
      case 'refused': {
        // The page of a proxy or firewall is not about the refresh token.
        if (outcome.status === 403 && outcome.isPage !== true && !stopping.signal.aborted) {
          const refused = await earlyOrSpent(attempt, ['early-or-spent']);
          if (refused) return refused;
        }
        await close(attempt, outcome.kind);
        throw pause(60, refusedError(outcome.status));
      }
      case 'unsent':
        await close(attempt, outcome.kind);
        throw pause(1, stopping.signal.aborted ? stoppingError() : unreachableError());
      case 'uncertain':
        // The claim stays: whether the refresh token is spent is unknown, and nothing is guessed.
        await close(attempt, outcome.kind);
        return { kind: 'uncertain', attempt: attempt.id, why: outcome.why };
    }
  }

  function keepAnswer({ from, id }: Attempt, answer: RawAnswer): void {
    const { set, generation, saved } = from;
    const namesPair = pairNamedIn(answer) !== undefined;
    const at = clock.now();
    rescue?.keepAnswer({ set, generation, attempt: id, at, home: saved.home, answer, namesPair });
  }

  /** Saves the pair before its first use. If that fails, the pair is used from memory until it works. */
  async function keep({ from, id, begunAt }: Attempt, grant: Granted): Promise<AttemptResult> {
    const { pair, outcome } = nextPair(grant, from, clock);
    const { set, generation } = from;
    const latencyMs = Math.round(clock.elapsed() - begunAt);
    const at = clock.now() - latencyMs;
    const { home } = from.saved;
    const saved = { set, generation, attempt: id, pair, outcome, at, latencyMs, home };
    const kept = await saver.save(saved);
    onExchange?.(outcome, latencyMs / 1000);
    // A refresh token that was refused before, and is accepted now, was refused as too early.
    const refusesEarly = from.refusesEarly || from.refusedEarly;
    const next = { set, generation: generation + 1, pair, saved, ...FRESH, refusesEarly };
    if (outcome !== 'rotated') {
      log.error({ trouble: 'not-renewed', generation: next.generation, outcome }, NOT_RENEWED);
    }
    // The kept answers to this refresh token are not needed any more.
    if (kept !== 'pending') rescue?.forgetAnswers(from);
    if (kept === 'second') {
      log.error({ trouble: 'second-pair', generation: next.generation }, SECOND_PAIR);
    }
    return { kind: 'kept', next, bornAt: begunAt, isSecond: kept === 'second' };
  }

  /** Ends the claim if the refusal leaves open whether the refresh token is spent. Then no process has to wait. */
  async function earlyOrSpent(
    attempt: Attempt,
    open: readonly Refusal[] = ['early-or-spent', 'expired-since'],
  ): Promise<AttemptResult | undefined> {
    // Requests may have met its expiry since.
    const tokens = held.isHeld(attempt.from) ? held.tokens! : attempt.from;
    const refusal = await times.judge(tokens, attempt.knewExpired);
    if (!open.includes(refusal)) return undefined;
    await close(attempt, 'early-or-spent');
    return { kind: 'early-or-spent', hasExpired: refusal === 'expired-since' };
  }

  async function refuse(attempt: Attempt, claimed: Claim): Promise<AttemptResult> {
    const result = await meaningOfRefusal(attempt, claimed).catch(async (error: unknown) => {
      // A store that cannot be read does not show whether another process was first. The claim ends all the same.
      await close(attempt, 'uncertain');
      throw error;
    });
    if (!result) {
      await close(attempt, 'uncertain');
      throw pause(0, stoppingError());
    }
    if (result.kind !== 'early-or-spent') await close(attempt, 'invalid-grant');
    return result;
  }

  /** Undefined if this process ends before the meaning is known: another process finds out. */
  async function meaningOfRefusal(
    attempt: Attempt,
    claimed: Claim,
  ): Promise<AttemptResult | undefined> {
    const { from, begunAt } = attempt;
    if (await isOvertaken(from)) return { kind: 'overtaken' };
    if (stopping.signal.aborted) return undefined;
    const refused = await earlyOrSpent(attempt);
    if (refused) return refused;
    // Another process may have been first and not have saved yet: this one waits as long as its pair can arrive.
    const until = claimed.exclusive ? begunAt : begunAt + CLAIM_LIFE_MS;
    const left = until - clock.elapsed();
    if (left > 0) {
      const waitSeconds = Math.round(left / 1000);
      log.warn({ generation: from.generation, waitSeconds }, REFUSED);
      onRefused?.(waitSeconds);
    }
    const pauseBetween = growingPauses(clock, PAUSES_AFTER_REFUSAL);
    while (clock.elapsed() < until) {
      if (stopping.signal.aborted) return undefined;
      await pauseBetween(() => stopping.signal.aborted || !held.isHeld(from));
      if (await isOvertaken(from)) return { kind: 'overtaken' };
    }
    return { kind: 'lost' };
  }

  /** Ends the claim. Until that can be written, the claim stays in the store, where it means uncertain. */
  async function close(
    { from: { generation }, id, begunAt, requestId }: Attempt,
    outcome: Ending['outcome'],
  ): Promise<void> {
    const latencyMs = Math.round(clock.elapsed() - begunAt);
    onExchange?.(outcome, latencyMs / 1000);
    if (outcome !== 'unsent') {
      log.warn({ generation, outcome, serviceRequestId: requestId }, NO_TOKENS);
    }
    await held.endAttempt(id, { outcome, latencyMs });
  }

  async function isOvertaken(from: HeldTokens): Promise<boolean> {
    await held.sync();
    return !held.isHeld(from);
  }
}

/**
 * Pauses between reads of the store while another process exchanges: each is twice as long as the one before, and ends
 * early when there is news, which the store may announce.
 */
function growingPauses(
  clock: Clock,
  { shortest, longest }: { shortest: number; longest: number },
): (isNews: () => boolean) => Promise<void> {
  let next = shortest;
  return async (isNews) => {
    const until = clock.elapsed() + next;
    next = Math.min(longest, 2 * next);
    do await clock.sleep(shortest);
    while (clock.elapsed() < until && !isNews());
  };
}

type Granted = Extract<ExchangeOutcome, { kind: 'granted' }>['grant'];

const FRESH = {
  lost: false,
  movedTo: null,
  imported: false,
  claim: null,
  unanswered: 0,
  surplus: 0,
  refusedEarly: false,
} as const;

const NO_TOKENS = 'an exchange of the refresh token gave no tokens';

const NOT_RENEWED =
  'The recruiting service answered a refresh without a new refresh token or without an access token; what arrived is ' +
  'kept and used. If it happens again, ask the service; a new token can be imported with `tokens import <link> --replace`.';

const SECOND_PAIR =
  'The recruiting service gave a second pair for one refresh token; both are kept, and the first is in use. ' +
  'If it happens again, ask the service.';

/** Logged before the wait. The set is lost only if no other process has the next pair, which only waiting shows. */
export const REFUSED =
  'The service refused the refresh token. Another process may have exchanged it before, and its token pair may still ' +
  'arrive in the store: this process waits for it. Do not import a new token meanwhile.';

const WITHDRAWN =
  'The recruiting service refuses the refresh token of the import for good: it was spent before, or revoked. So the import was taken ' +
  `back, and the token set that it had replaced is in use again. ${MAKE_A_NEW_ONE}`;

const REFUSES_EARLY =
  'The recruiting service accepted a refresh token that it had refused while the access token worked: it exchanges none ' +
  'before the access token has expired. This is remembered in the token store, and from now on refreshes wait for the expiry.';
