import { randomUUID } from 'node:crypto';
import type { GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { ConnectToTokenEndpoint } from './service/exchange.ts';
import type { ExchangeOutcome } from './service/exchange-outcome.ts';
import type { Head, HeadSource } from './head.ts';
import type { RawAnswer } from './token-set.ts';
import { nextPair } from './next-pair.ts';
import type { PairSaver } from './pair-saver.ts';
import {
  rateLimitedError,
  refusedError,
  stoppingError,
  unreachableError,
  unwritableStoreError,
} from './token-errors.ts';
import { pairNamedIn } from './service/answer-text.ts';
import type { Rescue } from './store/rescue.ts';
import type { Ending, Mark, PairOutcome, TokenStore } from './store/token-store.ts';

/** What came of one try to exchange a refresh token, the store being up to date with it. */
export type AttemptResult =
  /** Received, and saved or held until it is. */
  | { kind: 'kept'; next: HeadSource; bornAt: number; surplus: boolean }
  /** Another process was first: nothing was sent, or its pair has come. */
  | { kind: 'overtaken' }
  | { kind: 'lost' }
  | { kind: 'doubtful'; attempt: string; why: string }
  /** Nothing was spent. For so many seconds there is no use in another try. */
  | { kind: 'postponed'; error: GraphQLError; seconds: number };

export interface AttemptParts {
  store: TokenStore;
  rescue: Rescue | undefined;
  connect: ConnectToTokenEndpoint;
  /** Which service the set must belong to. */
  baseUrl: string;
  clock: Clock;
  log: Logger;
  /** Names this process in the history. */
  replica: string;
  /** Told of every exchange, also when nothing was sent. */
  onExchange?: (outcome: PairOutcome | Ending['outcome'], seconds: number) => void;
}

interface Surroundings {
  isStopping(): boolean;
  /** The right to exchange was taken. */
  onMark(): void;
  /** Looks at the store. */
  isOvertaken(from: Head): Promise<boolean>;
  /** Looks at the store, and at what other processes could not save there. @throws when that cannot be read */
  isAnswered(from: Head): Promise<boolean>;
}

interface Begun {
  readonly from: Head;
  readonly attempt: string;
  /** By `clock.elapsed()`. */
  readonly begun: number;
}

/** From the mark on: nothing is sent later than this. What is left of its life is for the answer. */
const SEND_WITHIN_MS = 25_000;
const MARK_LIFE_MS = 150_000;
const LOOK_AT_STORE_MS = 1_000;

export interface ExchangeAttempt {
  /** Connect, mark, send once, save: in this order, and nothing is sent where a step before it failed. */
  exchange(from: Head): Promise<AttemptResult>;
  /** That the set is lost, where the store could not be told when it was found out. Never rejects. */
  tellStore(): Promise<void>;
}

export function createExchangeAttempt(
  { store, rescue, connect, baseUrl, clock, log, replica, onExchange }: AttemptParts,
  saver: PairSaver,
  { isStopping, onMark, isOvertaken, isAnswered }: Surroundings,
): ExchangeAttempt {
  let untold: (() => Promise<void>) | undefined;
  return { exchange: attemptOnce, tellStore: async () => untold?.() };

  async function attemptOnce(from: Head): Promise<AttemptResult> {
    const endpoint = await connect().catch((cause: unknown) => {
      onExchange?.('unsent', 0);
      return postponed(1, unreachableError(cause));
    });
    if ('kind' in endpoint) return endpoint;
    try {
      const begun = { from, attempt: randomUUID(), begun: clock.elapsed() };
      const mark = await writeMark(begun);
      if (!mark) return { kind: 'overtaken' };
      if ('kind' in mark) return mark;
      onMark();
      const known = from.doubtful && (await answerOf(begun));
      if (known) return known;
      // A process that was stopped between the mark and here must not wake up and send.
      const maySend = () => !isStopping() && clock.elapsed() - begun.begun < SEND_WITHIN_MS;
      const outcome: ExchangeOutcome = maySend()
        ? await endpoint.exchange(from.pair.refreshToken, maySend)
        : { kind: 'unsent' };
      return await settle(begun, mark, outcome);
    } finally {
      await endpoint.close();
    }
  }

  /**
   * Connecting took its time. Where both were asleep, the answer to the exchange in doubt may have reached its
   * process only now.
   */
  async function answerOf(exchange: Begun): Promise<AttemptResult | undefined> {
    try {
      if (!(await isAnswered(exchange.from))) return undefined;
      await close(exchange, 'unsent');
      return { kind: 'overtaken' };
    } catch (error) {
      await close(exchange, 'unsent');
      throw error;
    }
  }

  async function writeMark({ from, attempt }: Begun) {
    const { set, generation, doubt: over } = from;
    const at = clock.now();
    const mark = { set, generation, attempt, at, over, lifeMs: MARK_LIFE_MS, replica };
    return store.mark(mark).catch((error: unknown) => postponed(1, unwritableStoreError(error)));
  }

  async function settle(
    exchange: Begun,
    mark: Mark,
    outcome: ExchangeOutcome,
  ): Promise<AttemptResult> {
    // Before anything else happens: of what came, nothing is lost.
    if ('answer' in outcome) keepAnswer(exchange, outcome.answer);
    switch (outcome.kind) {
      case 'granted':
        return keep(exchange, outcome.grant);
      case 'invalid-grant':
        return refuse(exchange, mark);
      case 'rate-limited':
        await close(exchange, outcome.kind);
        return postponed(outcome.retryAfter, rateLimitedError(outcome.retryAfter));
      case 'refused':
        await close(exchange, outcome.kind);
        return postponed(60, refusedError(outcome.status));
      case 'unsent':
        await close(exchange, outcome.kind);
        return postponed(1, isStopping() ? stoppingError() : unreachableError());
      case 'uncertain':
        // The mark stays: whether the refresh token is spent is unknown, and nothing is guessed.
        await close(exchange, outcome.kind);
        return { kind: 'doubtful', attempt: exchange.attempt, why: outcome.why };
    }
  }

  function keepAnswer({ from, attempt }: Begun, answer: RawAnswer): void {
    const { set, generation } = from;
    const namesPair = pairNamedIn(answer) !== undefined;
    const at = clock.now();
    const home = homeOf(from);
    rescue?.keepAnswer({ set, generation, attempt, at, home, answer, namesPair });
  }

  function homeOf({ saved }: Head) {
    return { store: store.description, storeId: saved.home?.storeId, baseUrl };
  }

  /** Saved before first use. When saving fails, the pair is served from memory until that works. */
  async function keep({ from, attempt, begun }: Begun, grant: Granted): Promise<AttemptResult> {
    const { pair, outcome } = nextPair(grant, from, clock);
    const { set, generation } = from;
    const latencyMs = Math.round(clock.elapsed() - begun);
    const at = clock.now() - latencyMs;
    const home = homeOf(from);
    const saved = { set, generation, attempt, pair, outcome, at, latencyMs, home };
    const kept = await saver.save(saved);
    onExchange?.(outcome, latencyMs / 1000);
    const next = { set, generation: generation + 1, pair, saved, ...FRESH };
    if (outcome !== 'rotated') {
      log.error({ trouble: 'not-renewed', generation: next.generation, outcome }, NOT_RENEWED);
    }
    // The refresh token that was exchanged now is what they were waiting for.
    if (kept !== 'pending') rescue?.forgetAnswers(from);
    if (kept === 'surplus') {
      log.error({ trouble: 'second-pair', generation: next.generation }, SECOND_PAIR);
    }
    return { kind: 'kept', next, bornAt: begun, surplus: kept === 'surplus' };
  }

  async function refuse(exchange: Begun, mark: Mark): Promise<AttemptResult> {
    const { from, begun } = exchange;
    // Another process may have won and not saved yet: its pair is waited for as long as it can come.
    const until = mark.overExpired ? begun + MARK_LIFE_MS : begun;
    try {
      let overtaken = await isOvertaken(from);
      while (!overtaken && clock.elapsed() < until) {
        if (isStopping()) {
          await close(exchange, 'uncertain');
          return postponed(0, stoppingError());
        }
        await clock.sleep(LOOK_AT_STORE_MS);
        overtaken = await isOvertaken(from);
      }
      await close(exchange, 'invalid-grant');
      return { kind: overtaken ? 'overtaken' : 'lost' };
    } catch (error) {
      // A store that cannot be read does not say whether somebody else has won. The right to exchange is given
      // back all the same.
      await close(exchange, 'uncertain');
      throw error;
    }
  }

  /** That this cannot be written changes nothing for the tokens: what is read of the mark is then doubt. */
  async function close({ attempt, begun }: Begun, outcome: Ending['outcome']): Promise<void> {
    const latencyMs = Math.round(clock.elapsed() - begun);
    onExchange?.(outcome, latencyMs / 1000);
    const tell = () => store.settle(attempt, { outcome, latencyMs });
    await tell().catch((error: unknown) => {
      log.error({ err: error, outcome }, 'how an exchange ended could not be written to the store');
      if (outcome === 'invalid-grant') untold = tellLate;
    });

    async function tellLate(): Promise<void> {
      await tell().then(
        () => (untold = undefined),
        () => {},
      );
    }
  }
}

type Granted = Extract<ExchangeOutcome, { kind: 'granted' }>['grant'];

const FRESH = {
  lost: false,
  movedTo: null,
  imported: false,
  mark: null,
  unanswered: 0,
  surplus: 0,
} as const;

const NOT_RENEWED =
  'The recruiting service answered a renewal without a new refresh token or without an access token. What came is kept ' +
  'and used. If it happens again, ask the service; a new token can be imported with `tokens import <link> --replace`.';

const SECOND_PAIR =
  'The recruiting service gave a second pair for one refresh token. Both are kept; the first one is in use.';

function postponed(seconds: number, error: GraphQLError) {
  return { kind: 'postponed' as const, error, seconds };
}
