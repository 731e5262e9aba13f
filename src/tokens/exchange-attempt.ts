import { randomUUID } from 'node:crypto';
import type { GraphQLError } from 'graphql';
import type { BlockedRefresh } from './blocked-refresh.ts';
import {
  accessLeft,
  mayHaveSuccessor,
  nextPair,
  type HeldTokens,
  type TokenSource,
} from './held-tokens.ts';
import type { PairSaver } from './pair-saver.ts';
import type { Refusal, SendingTimes } from './sending-times.ts';
import { pairNamedIn } from './service/answer-text.ts';
import type { ConnectToTokenEndpoint, ExchangeOutcome } from './service/exchange.ts';
import { CLAIM_LIFE_MS, type Claim, type Ending, type PairOutcome } from './store/token-store.ts';
import {
  rateLimitedError,
  refusedError,
  stoppingError,
  unreachableError,
  unwritableStoreError,
} from './token-errors.ts';
import type { RawAnswer } from './token-set.ts';
import { growingPauses, type TokenSync, type TokenSyncParts } from './token-sync.ts';

/** How one attempt to exchange a refresh token ended. The store has it too, unless it was unavailable. */
type AttemptResult =
  /** A pair was received, and is saved or held until it is. */
  | { kind: 'kept'; next: TokenSource; bornAt: number; isSecond: boolean }
  /** Another process was first: nothing was sent, or its pair has arrived. */
  | { kind: 'overtaken' }
  /** Refused while the access token worked: too early, or spent. `hasExpired`: it works no more by now. */
  | { kind: 'early-or-spent'; hasExpired: boolean }
  | { kind: 'lost' }
  | { kind: 'uncertain'; attempt: string; why: string }
  /** Nothing was spent. Another attempt is useless for this many seconds. */
  | { kind: 'postponed'; error: GraphQLError; seconds: number };

export interface AttemptParts extends TokenSyncParts {
  connect: ConnectToTokenEndpoint;
  /** Called after every exchange, also when nothing was sent. `requestId` is the service's own, of one that failed. */
  onExchange?: (
    outcome: PairOutcome | Ending['outcome'],
    seconds: number,
    requestId?: string,
  ) => void;
  /** Called when the service refused the refresh token, before the wait for the pair of another process. */
  onRefused?: (waitSeconds: number) => void;
}

interface Others {
  readonly saver: PairSaver;
  readonly held: TokenSync;
  readonly times: SendingTimes;
  readonly blocked: BlockedRefresh;
  /** Nothing is sent from then on. */
  readonly stopping: AbortSignal;
}

interface Begun {
  readonly from: HeldTokens;
  readonly attempt: string;
  /** By `clock.elapsed()`. */
  readonly begun: number;
  /** Whether the access token was known to have expired then. */
  readonly knewExpired: boolean;
  /** The service's own id of it. */
  readonly requestId?: string;
}

/** From the claim on: nothing is sent later than this. The rest of the claim's life is for the answer. */
const SEND_WITHIN_MS = 25_000;
const LOOKS = { shortest: 1_000, longest: 5_000 };

/** Said before the wait. The set is lost only if no other process has the next pair: time alone shows that. */
export const REFUSED =
  'The service refused the refresh token. Another process may have exchanged it before, and its token pair may still ' +
  'arrive in the store: this process waits for it. Do not import a new token meanwhile.';

type ExchangeAttempt = (from: HeldTokens) => Promise<AttemptResult>;

/** Connects, claims, sends once and saves, in this order. Nothing is sent if a step before that failed. */
export function createExchangeAttempt(
  { store, rescue, connect, clock, log, replica, onExchange, onRefused }: AttemptParts,
  { saver, held, times, blocked, stopping }: Others,
): ExchangeAttempt {
  return attemptOnce;

  async function attemptOnce(from: HeldTokens): Promise<AttemptResult> {
    const endpoint = await connect().catch((cause: unknown) => {
      onExchange?.('unsent', 0);
      return postponed(1, unreachableError(cause));
    });
    if ('kind' in endpoint) return endpoint;
    try {
      const knewExpired = from.expired || accessLeft(from, clock) <= 0;
      const begun = { from, attempt: randomUUID(), begun: clock.elapsed(), knewExpired };
      const claimed = await claim(begun);
      if (!claimed) return { kind: 'overtaken' };
      if ('kind' in claimed) return claimed;
      blocked.began();
      const answered = mayHaveSuccessor(from) && (await lateAnswer(begun));
      if (answered) return answered;
      // A process that was suspended after the claim must not wake up and send.
      const maySend = () => !stopping.aborted && clock.elapsed() - begun.begun < SEND_WITHIN_MS;
      const outcome: ExchangeOutcome = maySend()
        ? await endpoint.exchange(from.pair.refreshToken, maySend)
        : { kind: 'unsent' };
      return await conclude(begun, claimed, outcome);
    } finally {
      await endpoint.close();
    }
  }

  async function claim({ from, attempt }: Begun) {
    const { set, generation, state, refusedEarly: knowsRefusal } = from;
    const over = state.kind === 'uncertain' ? state.attempt : null;
    const seen = { over, knowsRefusal };
    const wanted = { set, generation, attempt, ...seen, lifeMs: CLAIM_LIFE_MS, replica };
    return store.claim(wanted).catch((error: unknown) => {
      // It may have been written all the same.
      held.endAttemptLater(attempt, { outcome: 'unsent', latencyMs: 0 });
      return postponed(1, unwritableStoreError(error));
    });
  }

  /**
   * Connecting took time. If the machine slept meanwhile, the answer to the uncertain exchange may have reached the
   * process that waits for it only now.
   */
  async function lateAnswer(exchange: Begun): Promise<AttemptResult | undefined> {
    try {
      await held.recoverPair();
      if (held.isHeld(exchange.from)) return undefined;
      await close(exchange, 'unsent');
      return { kind: 'overtaken' };
    } catch (error) {
      await close(exchange, 'unsent');
      throw error;
    }
  }

  async function conclude(
    begun: Begun,
    claimed: Claim,
    outcome: ExchangeOutcome,
  ): Promise<AttemptResult> {
    const { requestId } = outcome;
    const exchange = requestId === undefined ? begun : { ...begun, requestId };
    // Before anything else can fail.
    if ('answer' in outcome) keepAnswer(exchange, outcome.answer);
    switch (outcome.kind) {
      case 'granted':
        return keep(exchange, outcome.grant);
      case 'invalid-grant':
        return refuse(exchange, claimed);
      case 'rate-limited':
        await close(exchange, outcome.kind);
        return postponed(outcome.retryAfter, rateLimitedError(outcome.retryAfter));
      case 'refused': {
        // The page of a proxy or firewall says nothing about the refresh token.
        if (outcome.status === 403 && outcome.isPage !== true && !stopping.aborted) {
          const refused = await earlyOrSpent(exchange, ['early-or-spent']);
          if (refused) return refused;
        }
        await close(exchange, outcome.kind);
        return postponed(60, refusedError(outcome.status));
      }
      case 'unsent':
        await close(exchange, outcome.kind);
        return postponed(1, stopping.aborted ? stoppingError() : unreachableError());
      case 'uncertain':
        // The claim stays: whether the refresh token is spent is unknown, and nothing is guessed.
        await close(exchange, outcome.kind);
        return { kind: 'uncertain', attempt: exchange.attempt, why: outcome.why };
    }
  }

  function keepAnswer({ from, attempt }: Begun, answer: RawAnswer): void {
    const { set, generation } = from;
    const namesPair = pairNamedIn(answer) !== undefined;
    const at = clock.now();
    const { home } = from.saved;
    rescue?.keepAnswer({ set, generation, attempt, at, home, answer, namesPair });
  }

  /** Saves the pair before its first use. If that fails, the pair is used from memory until it works. */
  async function keep({ from, attempt, begun }: Begun, grant: Granted): Promise<AttemptResult> {
    const { pair, outcome } = nextPair(grant, from, clock);
    const { set, generation } = from;
    const latencyMs = Math.round(clock.elapsed() - begun);
    const at = clock.now() - latencyMs;
    const { home } = from.saved;
    const saved = { set, generation, attempt, pair, outcome, at, latencyMs, home };
    const kept = await saver.save(saved);
    onExchange?.(outcome, latencyMs / 1000);
    // A refresh token that was refused before, and is accepted now, was refused as too early.
    const refusesEarly = from.refusesEarly || from.refusedEarly;
    const next = { set, generation: generation + 1, pair, saved, ...FRESH, refusesEarly };
    if (outcome !== 'rotated') {
      log.error({ trouble: 'not-renewed', generation: next.generation, outcome }, NOT_RENEWED);
    }
    // The kept answers to this refresh token are of no use any more.
    if (kept !== 'pending') rescue?.forgetAnswers(from);
    if (kept === 'second') {
      log.error({ trouble: 'second-pair', generation: next.generation }, SECOND_PAIR);
    }
    return { kind: 'kept', next, bornAt: begun, isSecond: kept === 'second' };
  }

  /** Ends the claim if so: the refresh token may be as valid as before, and nobody has to wait. */
  async function earlyOrSpent(
    exchange: Begun,
    open: readonly Refusal[] = ['early-or-spent', 'expired-since'],
  ): Promise<AttemptResult | undefined> {
    // Requests may have met its expiry since.
    const tokens = held.isHeld(exchange.from) ? held.tokens! : exchange.from;
    const refusal = await times.judge(tokens, exchange.knewExpired);
    if (!open.includes(refusal)) return undefined;
    await close(exchange, 'early-or-spent');
    return { kind: 'early-or-spent', hasExpired: refusal === 'expired-since' };
  }

  async function refuse(exchange: Begun, claimed: Claim): Promise<AttemptResult> {
    const { from, begun } = exchange;
    // Another process may have been first and not have saved yet: this one waits as long as that pair can arrive.
    const until = claimed.exclusive ? begun : begun + CLAIM_LIFE_MS;
    const pause = growingPauses(clock, LOOKS);
    try {
      let overtaken = await isOvertaken(from);
      // There is no time to ask what it means.
      if (!overtaken && stopping.aborted) return await leaveOpen(exchange);
      const refused = overtaken ? undefined : await earlyOrSpent(exchange);
      if (refused) return refused;
      const left = until - clock.elapsed();
      if (!overtaken && left > 0) {
        const waitSeconds = Math.round(left / 1000);
        log.warn({ generation: from.generation, waitSeconds }, REFUSED);
        onRefused?.(waitSeconds);
      }
      while (!overtaken && clock.elapsed() < until) {
        if (stopping.aborted) return await leaveOpen(exchange);
        await pause(() => stopping.aborted || !held.isHeld(from));
        overtaken = await isOvertaken(from);
      }
      await close(exchange, 'invalid-grant');
      return { kind: overtaken ? 'overtaken' : 'lost' };
    } catch (error) {
      // A store that cannot be read does not show whether another process was first. The claim ends all the same.
      await close(exchange, 'uncertain');
      throw error;
    }
  }

  /** For the end of this process: the next one, or another, decides what the refusal means. */
  async function leaveOpen(exchange: Begun): Promise<AttemptResult> {
    await close(exchange, 'uncertain');
    return postponed(0, stoppingError());
  }

  /** Ends the claim. Until that can be written, the claim stays in the store, where it means uncertain. */
  async function close(
    { from: { generation }, attempt, begun, requestId }: Begun,
    outcome: Ending['outcome'],
  ): Promise<void> {
    const latencyMs = Math.round(clock.elapsed() - begun);
    onExchange?.(outcome, latencyMs / 1000, requestId);
    if (outcome !== 'unsent') {
      log.warn({ generation, outcome, serviceRequestId: requestId }, NO_TOKENS);
    }
    await held.endAttempt(attempt, { outcome, latencyMs });
  }

  async function isOvertaken(from: HeldTokens): Promise<boolean> {
    await held.sync();
    return !held.isHeld(from);
  }
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

function postponed(seconds: number, error: GraphQLError) {
  return { kind: 'postponed' as const, error, seconds };
}
