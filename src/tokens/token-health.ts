import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import {
  accessLeft,
  refreshLeft,
  waitsForExpiry,
  type HeldTokens,
  type TokenState,
} from './held-tokens.ts';

/** What can be wrong with the tokens: the same words in logs (`trouble`), metrics and `tokens status`. */
export const TROUBLES = [
  'missing',
  'moved',
  'lost',
  'unauthorized',
  'uncertain',
  'early-or-spent',
  'unsaved',
  'blocked',
  'ending',
  'not-renewed',
  'second-pair',
  'not-rotated',
] as const;

export type Trouble = (typeof TROUBLES)[number];

/** Troubles after which nothing can be refreshed until a human acts. */
export const FATAL: ReadonlySet<Trouble> = new Set(['missing', 'moved', 'lost']);

interface TokenFacts {
  readonly state: TokenState['kind'];
  /** A pair that was received is not in the store. */
  readonly unsaved: boolean;
  /** A refresh cannot begin: the store, a rescue file, or another process prevents it. */
  readonly blocked: boolean;
  /** The service refuses the access token although it has not expired. */
  readonly unauthorized: boolean;
  /** Times in ms. */
  readonly accessLeft: number;
  readonly age: number;
  readonly refreshLeft: number;
  readonly refreshLife: number;
  /** The last answer had no new refresh token, or no access token. */
  readonly notRenewed: boolean;
  readonly hasSecondPair: boolean;
  /** The pair came from an import, and was never refreshed. */
  readonly imported: boolean;
  /** The refresh token is sent only when the access token has expired, because the service refuses it before. */
  readonly waitsForExpiry: boolean;
}

/** How late a refresh may be before it is reported, ms. Retries succeed earlier unless the problem lasts. */
const LATE_MS = 10 * 60_000;

export function troublesOf(facts: TokenFacts): Trouble[] {
  const { state } = facts;
  if (state === 'moved') return ['moved'];
  const isLost = state === 'lost' || facts.refreshLeft <= 0;
  const isUncertain = state === 'uncertain';
  const life = Math.min(facts.accessLeft + facts.age, facts.refreshLife);
  const lateness = Math.min(LATE_MS, life / 10);
  const isLate = facts.age > (2 / 3) * life + lateness;
  const isNeverRefreshed = facts.imported && state !== 'refreshing';
  // Then the gateway decides when the refresh token is sent, and a command to refresh would be refused.
  const isOpen = isUncertain || state === 'early-or-spent';
  const isNotRotated = facts.waitsForExpiry
    ? facts.accessLeft <= -lateness
    : facts.accessLeft <= 0 || isLate || isNeverRefreshed;
  const troubles: Partial<Record<Trouble, boolean>> = {
    lost: isLost,
    unauthorized: facts.unauthorized && !isLost,
    uncertain: isUncertain && !isLost,
    'early-or-spent': state === 'early-or-spent' && !isLost,
    unsaved: facts.unsaved,
    blocked: facts.blocked && !isLost,
    ending: !isLost && thresholdOf(facts.refreshLeft, facts.refreshLife) !== undefined,
    'not-renewed': facts.notRenewed,
    'second-pair': facts.hasSecondPair,
    'not-rotated': !isLost && !isOpen && isNotRotated,
  };
  return TROUBLES.filter((trouble) => troubles[trouble] === true);
}

/** What to do about an empty store. The likely reason is that TOKEN_STORE names another store than intended. */
export const IF_MISSING =
  'If a set was imported before, check TOKEN_STORE and the working directory. If a gateway that had it still runs, it ' +
  'holds the tokens: do not import others, and run this again in a minute. ' +
  'Otherwise have an administrator make a token in the personal account, and run `tokens import <link>`.';

/** What happened and what to do, for the operator. */
export const ADVICE: Record<Trouble, string> = {
  missing: `There is no token set in this store. ${IF_MISSING}`,
  moved:
    'The set was moved to another store, and cannot be refreshed from this one. Set TOKEN_STORE to that store for every ' +
    'gateway that still uses this one, and restart it. If that store has no set, run `tokens export` to it again.',
  lost:
    'The refresh token is spent, revoked, or past its end. Run `tokens recover` first: an answer of the service that was not ' +
    'understood may hold a pair. If it finds none, have an administrator make a new token in the personal account, and ' +
    'run `tokens import <link>`; a running gateway continues by itself. Do not restore a backup of the store: the refresh ' +
    'token in it is spent.',
  unauthorized:
    'The service refuses the access token although it has not expired by the clock here, and callers get UPSTREAM_UNAUTHORIZED: the administrator who ' +
    'made it was probably demoted or blocked, or the token was revoked. Run `tokens check` to see what the service answers. Have the ' +
    'account checked; if it needs a new token, run `tokens import <link> --replace`; a running gateway continues by itself.',
  uncertain:
    'An exchange never got a clear answer, so the refresh token may be spent. The access token is used while it works; ' +
    'shortly before its end a running gateway sends the refresh token once more. Run `tokens recover` to resolve it at once.',
  'early-or-spent':
    'The service refused to exchange the refresh token although the access token works: either it exchanges none before the ' +
    'access token has expired, or the refresh token is spent. Requests are answered meanwhile. Right after the expiry a running ' +
    'gateway sends it once more, which shows what is true: keep one running. If it was only too early, that is remembered, and ' +
    'refreshes wait for the expiry from then on.',
  unsaved:
    'A new pair is not in the store yet: it is in a rescue file, and in the memory of the gateway that got it. ' +
    'Free the disk or restore the permissions before you stop that gateway; then it saves the pair by itself. ' +
    "If it has ended, or the store's file is gone, or its tables are damaged, run `tokens recover`, which saves the pair, and " +
    'makes what is missing; the next start of a gateway saves it too. Do not remove a rescue file, and do not restore a backup.',
  blocked:
    'A refresh cannot begin: the store cannot be written, a rescue file that may hold the next pair cannot be read, ' +
    'or another process keeps the claim. The access token works until it expires. Free the disk or restore the ' +
    'permissions; if there is a rescue file, or the clock of the store was set back, run `tokens recover`; wake or end a process that was stopped on this store, ' +
    'or that keeps its file locked. A running gateway then continues by itself.',
  ending:
    'The refresh token was not renewed for long, and ends soon; then only a new set helps. Start a gateway, or run ' +
    '`tokens refresh` and read its output.',
  'not-renewed':
    'The last answer of the service had no new refresh token, or no access token; what arrived is kept and used. ' +
    'Ask the service if it happens again.',
  'second-pair':
    'The service gave two pairs for one refresh token; both are kept, and the first is in use. ' +
    'Ask the service if it happens again.',
  'not-rotated':
    'The access token has expired or its refresh is late, or the set was not refreshed since its import, so that its link ' +
    'still works. Start a gateway, or run `tokens refresh` and read its output.',
};

/** What a running gateway reports about its tokens, for metrics. */
export interface TokenHealth {
  readonly generation: number;
  /** Seconds, 0 when past. */
  readonly accessSecondsLeft: number;
  /** Seconds, 0 when past. */
  readonly refreshSecondsLeft: number;
  /** Seconds since the pair was refreshed. */
  readonly age: number;
  readonly troubles: readonly Trouble[];
  /** How often the store was found to be replaced, or gone. */
  readonly storeLosses: number;
}

export function healthOf(
  tokens: HeldTokens,
  clock: Clock,
  facts: Pick<TokenFacts, 'unsaved' | 'blocked'> & Pick<TokenHealth, 'storeLosses'>,
): TokenHealth {
  const { generation, imported, hasSecondPair, unauthorized, pair, saved } = tokens;
  const state = tokens.state.kind;
  const left = { access: accessLeft(tokens, clock), refresh: refreshLeft(tokens, clock) };
  const age = clock.elapsed() - tokens.bornAt;
  return {
    generation,
    accessSecondsLeft: Math.max(0, left.access / 1000),
    // The service rejects a lost refresh token, however long it would have lived.
    refreshSecondsLeft: state === 'lost' ? 0 : Math.max(0, left.refresh / 1000),
    age: age / 1000,
    storeLosses: facts.storeLosses,
    troubles: troublesOf({
      ...facts,
      state,
      notRenewed: saved.outcome !== 'rotated',
      age,
      imported,
      hasSecondPair,
      unauthorized,
      waitsForExpiry: waitsForExpiry(tokens),
      accessLeft: left.access,
      refreshLeft: left.refresh,
      refreshLife: pair.refreshTokenExpiresIn * 1000,
    }),
  };
}

/** Logs once for each threshold that the remaining life of the refresh token has fallen below. */
export function createEndWarnings(clock: Clock, log: Logger): (tokens: HeldTokens) => void {
  let warned: { end: number; threshold: number } | undefined;
  return (tokens) => {
    const left = refreshLeft(tokens, clock);
    const life = tokens.pair.refreshTokenExpiresIn * 1000;
    const end = tokens.bornAt + life;
    const threshold = thresholdOf(left, life);
    if (threshold === undefined || left <= 0) return;
    if (warned?.end === end && warned.threshold <= threshold) return;
    warned = { end, threshold };
    log.warn({ trouble: 'ending', daysLeft: Math.floor(left / DAY_MS) }, ENDING);
  };
}

/**
 * The threshold that has been passed, in days. A refresh token with a shorter life than usual has only those
 * thresholds that leave it two thirds of its life.
 *
 * @param left ms until its end
 * @param life its whole life, ms
 */
function thresholdOf(left: number, life: number): number | undefined {
  return THRESHOLDS_DAYS.filter((days) => days * DAY_MS <= life / 3).findLast(
    (days) => left <= days * DAY_MS,
  );
}

const DAY_MS = 86_400_000;
const THRESHOLDS_DAYS = [30, 14, 7, 3, 1];

const ENDING =
  'The refresh token was not renewed for long, and ends soon. Read the errors before this line, or run `tokens status`, ' +
  'to find out why it is not refreshed.';
