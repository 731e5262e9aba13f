import type { Clock } from '../clock.ts';
import type { LossCause } from './token-errors.ts';
import { A_DAY, A_HUNDRED_AND_TWENTY_DAYS, type Grant, type TokenPair } from './token-set.ts';
import type { NewPair, PairOutcome, StoredTokens } from './store/token-store.ts';

/** The newest pair that this process knows, and its state. All times are `clock.elapsed()`, ms. */
export interface HeldTokens {
  readonly set: string;
  readonly generation: number;
  readonly pair: TokenPair;
  /** The pair as it was saved, to save it again if the store loses it. */
  readonly saved: Required<NewPair>;
  /** When it was refreshed. */
  readonly bornAt: number;
  /** When it is due for a refresh, ahead of its expiry. */
  readonly refreshAt: number;
  readonly state: TokenState;
  /** It came from an import, and was never refreshed. */
  readonly imported: boolean;
  /** The service issued more than one pair of this generation. */
  readonly hasSecondPair: boolean;
  /** The service accepted this access token at least once, or may have before this process knew it. */
  readonly accepted: boolean;
  /** The service reported that this access token has expired, and has not accepted it since. */
  readonly expired: boolean;
  /** The service refused this access token, not as expired, and has not accepted it since. */
  readonly unauthorized: boolean;
  /** An exchange of this refresh token was refused while its access token worked. */
  readonly refusedEarly: boolean;
  /** The service exchanges a refresh token only after its access token has expired. */
  readonly refusesEarly: boolean;
}

/**
 * The state of the refresh token in use. A process without tokens (`missing`) does not have `HeldTokens`.
 *
 *   valid -> refreshing -> the next pair, which is valid
 *                 |  no clear answer
 *                 v
 *             uncertain -> sent once more: the next pair, or lost
 *
 *           refreshing
 *                 |  refused while the access token works
 *                 v
 *          early-or-spent -> sent once more after the expiry: the next pair, or lost
 *
 * Lost and moved are final for this pair: only a newer generation, or another set, ends them.
 */
export type TokenState =
  | { readonly kind: 'valid' }
  /** A process holds the claim at this moment. */
  | { readonly kind: 'refreshing'; readonly unanswered: number }
  /**
   * An exchange ended without a clear answer, so the refresh token may be spent. A later one that was rejected, by
   * a rate limit for instance, does not change that.
   */
  | {
      readonly kind: 'uncertain';
      /** Exchanges of this refresh token that were never clearly answered. */
      readonly unanswered: number;
      /** The attempt whose claim is still in the store; null if the store has none. */
      readonly attempt: string | null;
    }
  /**
   * An exchange was refused while the access token worked. Some services refuse every exchange before the expiry, and
   * keep the refresh token valid; otherwise it is spent.
   */
  | { readonly kind: 'early-or-spent'; readonly unanswered: number }
  | { readonly kind: 'lost'; readonly cause: Exclude<LossCause, 'ended'> }
  | { readonly kind: 'moved'; readonly to: string };

export type UncertainTokens = HeldTokens & {
  readonly state: Extract<TokenState, { kind: 'uncertain' }>;
};

type StateSource = Pick<StoredTokens, 'lost' | 'movedTo' | 'claim' | 'unanswered' | 'refusedEarly'>;

/** A pair from the store or from an exchange. */
export type TokenSource = StateSource &
  Pick<HeldTokens, 'saved'> &
  Pick<StoredTokens, 'set' | 'generation' | 'pair' | 'imported' | 'surplus' | 'refusesEarly'>;

/** @param forgotten unanswered exchanges that the store has lost */
export function stateOf(source: StateSource, forgotten = 0): TokenState {
  const { lost, movedTo, claim, refusedEarly } = source;
  const unanswered = Math.max(source.unanswered, forgotten);
  if (movedTo !== null) return { kind: 'moved', to: movedTo };
  if (lost) return lostAfter(unanswered);
  if (claim?.live === true) return { kind: 'refreshing', unanswered };
  if (claim === null && refusedEarly) return { kind: 'early-or-spent', unanswered };
  if (claim === null && unanswered === 0) return { kind: 'valid' };
  return { kind: 'uncertain', unanswered, attempt: claim?.attempt ?? null };
}

/** @param unanswered exchanges that were never clearly answered: one of them may have spent the refresh token */
export function lostAfter(unanswered: number): TokenState {
  return { kind: 'lost', cause: unanswered > 0 ? 'unanswered' : 'refused' };
}

export function unansweredOf(state: TokenState): number {
  return 'unanswered' in state ? state.unanswered : 0;
}

export function isUncertain(tokens: HeldTokens | undefined): tokens is UncertainTokens {
  return tokens?.state.kind === 'uncertain';
}

/** Whether the service may have issued the next pair without it arriving here. A copy of it may still be found. */
export function mayHaveSuccessor({ state }: Pick<HeldTokens, 'state'>): boolean {
  if (state.kind === 'early-or-spent') return state.unanswered > 0;
  return state.kind === 'uncertain' || (state.kind === 'lost' && state.cause === 'unanswered');
}

/** Whether the refresh token is sent only after the access token has expired. */
export function waitsForExpiry({
  refusedEarly,
  refusesEarly,
}: Pick<HeldTokens, 'refusedEarly' | 'refusesEarly'>): boolean {
  return refusedEarly || refusesEarly;
}

/** Whether the pair needs neither saving nor refreshing. */
export function isFinal({ state }: HeldTokens): boolean {
  return state.kind === 'lost' || state.kind === 'moved';
}

/**
 * @param bornAt when the pair was refreshed, by `clock.elapsed()`
 * @param first whether this process knew no pair before
 */
export function holdTokens(
  source: TokenSource,
  bornAt: number,
  first: boolean,
  random: number,
): HeldTokens {
  const { set, generation, pair, saved, imported, surplus, refusedEarly, refusesEarly } = source;
  const life = Math.min(pair.expiresIn, pair.refreshTokenExpiresIn) * 1000;
  const early = (2 / 3) * (1 - random / 20);
  return {
    set,
    generation,
    pair,
    saved,
    bornAt,
    // A refresh right after an import ends the link, which is a secret, and starts both lifetimes.
    refreshAt: imported ? bornAt : bornAt + life * early,
    // An earlier process may have used it, or it was imported some time after it was made: its expiry is believed at
    // once.
    accepted: imported || first,
    expired: false,
    unauthorized: false,
    refusedEarly,
    refusesEarly,
    imported,
    hasSecondPair: surplus > 0,
    state: stateOf(source),
  };
}

/**
 * The stored pair in the form in which it was saved. The latency of its exchange is not stored.
 *
 * @param now wall time of this machine, ms
 */
export function savedPairOf(stored: StoredTokens, store: string, now: number): Required<NewPair> {
  const { storeId, set, baseUrl, generation, attempt, pair, age } = stored;
  const at = now - age;
  const exchange = {
    generation: generation - 1,
    attempt,
    outcome: 'rotated',
    latencyMs: 0,
  } as const;
  return { set, ...exchange, pair, at, home: { store, storeId, baseUrl } };
}

/**
 * Returns the pair with an `at` by today's wall clock, to save it again. The clock may have been set since the refresh:
 * if it is a year ahead now, the next start would take a pair with the old time for a year old, and for expired.
 */
export function pairToSave({ saved, bornAt }: HeldTokens, clock: Clock): Required<NewPair> {
  return { ...saved, at: clock.now() - (clock.elapsed() - bornAt) };
}

/**
 * Returns what the store's content changes about a pair that is already held.
 *
 * @param forgotten unanswered exchanges that the store has lost
 */
export function changesIn(
  { state: before, ...held }: HeldTokens,
  source: StateSource & Pick<StoredTokens, 'surplus' | 'refusesEarly'>,
  forgotten: number,
): Pick<HeldTokens, 'state' | 'hasSecondPair' | 'refusedEarly' | 'refusesEarly'> {
  // The store may not have recorded it yet, or may have lost it.
  const refusedEarly = source.refusedEarly || (held.refusedEarly && !source.lost);
  const refusesEarly = source.refusesEarly || held.refusesEarly;
  const state = stateOf({ ...source, refusedEarly }, forgotten);
  // The service rejected it for good, which the store has not recorded yet.
  const isStillLost = before.kind === 'lost' && state.kind !== 'moved';
  return {
    state: isStillLost ? before : state,
    hasSecondPair: source.surplus > 0,
    refusedEarly,
    refusesEarly,
  };
}

/** After a failover, there may be two pairs of one generation. */
export function isSamePair(a: KnownPair, b: KnownPair): boolean {
  return (
    a.set === b.set &&
    a.generation === b.generation &&
    a.pair.accessToken === b.pair.accessToken &&
    a.pair.refreshToken === b.pair.refreshToken
  );
}

type KnownPair = Pick<HeldTokens, 'set' | 'generation' | 'pair'>;

/** A bearer token, and the pair that it belongs to. */
export interface AccessToken {
  readonly value: string;
  readonly set: string;
  readonly generation: number;
}

export function accessTokenOf({ set, generation, pair }: KnownPair): AccessToken {
  return { value: pair.accessToken, set, generation };
}

export function isOfPair(token: AccessToken, { set, generation, pair }: KnownPair): boolean {
  return token.set === set && token.generation === generation && token.value === pair.accessToken;
}

/** Milliseconds until the access token expires. */
export function accessLeft({ pair, bornAt }: HeldTokens, clock: Clock): number {
  return bornAt + pair.expiresIn * 1000 - clock.elapsed();
}

/** Milliseconds until the refresh token expires. */
export function refreshLeft({ pair, bornAt }: HeldTokens, clock: Clock): number {
  return bornAt + pair.refreshTokenExpiresIn * 1000 - clock.elapsed();
}

/**
 * When an uncertain refresh token is sent once more, while its access token still works: late, because some services
 * revoke everything when a refresh token is sent twice.
 */
export function replayAt(tokens: HeldTokens): number {
  if (waitsForExpiry(tokens)) return expiryOf(tokens);
  const { pair, bornAt } = tokens;
  return bornAt + withoutLastMinutes(Math.min(pair.expiresIn, pair.refreshTokenExpiresIn) * 1000);
}

/** When the access token expires, or shortly before the refresh token expires if that is earlier. */
export function expiryOf({ pair, bornAt }: HeldTokens): number {
  const lastMinutes = withoutLastMinutes(pair.refreshTokenExpiresIn * 1000);
  return bornAt + Math.min(pair.expiresIn * 1000, lastMinutes);
}

function withoutLastMinutes(life: number): number {
  return life - Math.min(LAST_MINUTES_MS, life / 10);
}

const LAST_MINUTES_MS = 5 * 60_000;

/** Why the refresh token is never sent again; undefined when it can be exchanged. */
export function lossOf(tokens: HeldTokens, clock: Clock): LossCause | undefined {
  if (tokens.state.kind === 'lost') return tokens.state.cause;
  return refreshLeft(tokens, clock) <= 0 ? 'ended' : undefined;
}

/**
 * Builds the next pair from the service's answer. Every token that arrived is used. A missing refresh token means that
 * the previous one stays valid until its old expiry (RFC 6749, section 6).
 */
export function nextPair(
  grant: Grant,
  from: HeldTokens,
  clock: Clock,
): { pair: TokenPair; outcome: PairOutcome } {
  const { accessToken = from.pair.accessToken, refreshToken = from.pair.refreshToken } = grant;
  const outcome = outcomeOf(grant, from);
  return {
    outcome,
    pair: {
      accessToken,
      refreshToken,
      expiresIn:
        outcome === 'without-access-token'
          ? Math.max(SOON_S, secondsOf(accessLeft(from, clock)))
          : (grant.expiresIn ?? A_DAY),
      refreshTokenExpiresIn:
        grant.refreshTokenExpiresIn ??
        (outcome === 'without-refresh-token'
          ? secondsOf(refreshLeft(from, clock))
          : A_HUNDRED_AND_TWENTY_DAYS),
      name: grant.name ?? from.pair.name,
    },
  };
}

/**
 * The shortest remaining life of an access token that was not replaced, seconds: the next refresh is not due at once.
 */
const SOON_S = 600;

function outcomeOf({ accessToken, refreshToken }: Grant, { pair }: HeldTokens): PairOutcome {
  if (accessToken === undefined) return 'without-access-token';
  if (refreshToken === undefined) return 'without-refresh-token';
  return refreshToken === pair.refreshToken ? 'same-refresh-token' : 'rotated';
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.round(ms / 1000));
}
