import { dueAt, endsAt, isLost, isUncertain, type State } from './state.ts';

/** What can be wrong with the tokens: the same words in `tokens status`, metrics, the log and the alerts. */
export const TROUBLES = [
  'missing',
  'lost',
  'uncertain',
  'unsaved',
  'late',
  'unauthorized',
  'ending',
] as const;

export type Trouble = (typeof TROUBLES)[number];

/** Troubles after which nothing can be refreshed until a human acts. */
export const FATAL: ReadonlySet<Trouble> = new Set(['missing', 'lost']);

/** For the operator: what is the case, what it means for callers, and the one step that helps. */
export const ADVICE: Readonly<Record<Trouble, string>> = {
  missing:
    'The store has no tokens, so callers get TOKENS_MISSING. Check that TOKEN_STORE names the store that you mean; then have an ' +
    'administrator make a new token in the personal account, and run `tokens import <link>`.',
  lost:
    'The refresh token is spent, revoked or at its end; callers are served for as long as the access token works, and then get ' +
    'TOKENS_LOST. Run `tokens recover`, which looks for a pair that arrived; if it finds none, have an administrator make ' +
    'a new token, and run `tokens import <link>`. Never restore a backup: its refresh token is spent.',
  uncertain:
    'A refresh got no clear answer, so the refresh token may be spent; callers are served for as long as the access token works. ' +
    'A running gateway sends the refresh token once more shortly before that ends; `tokens recover` does it now.',
  unsaved:
    'The newest pair is not in the store, only in the memory of the gateway and in its emergency file; callers are served. ' +
    'Repair the disk or the database before you stop that gateway: it saves the pair by itself, and so does its next start.',
  late:
    'The refresh is overdue; callers are served until the access token expires, and then get an error. Read the errors of the ' +
    'gateway, or run `tokens refresh`, which says what prevents it.',
  unauthorized:
    'The service refuses an access token that has not expired, so callers get UPSTREAM_UNAUTHORIZED: the administrator who made it ' +
    'was probably demoted or blocked. Run `tokens check`; have the account checked; a new token needs `tokens import --replace`.',
  ending:
    'The refresh token was not renewed for long and ends soon; callers are served until then. Start a gateway, or run ' +
    '`tokens refresh` and read its output.',
};

/** The trouble `missing` has another reason if the set was moved. */
export function adviceOn(trouble: Trouble, state: State | null): string {
  if (trouble !== 'missing' || !state?.movedTo) return ADVICE[trouble];
  return (
    `The token set was moved to ${state.movedTo}, so callers get TOKENS_MISSING once the access token has expired. Set TOKEN_STORE to ` +
    'that store for every gateway, and restart it.'
  );
}

/** What a process knows besides the state. */
export interface Facts {
  /** The store's clock, ms. */
  readonly now: number;
  /** The store does not show the newest pair. */
  readonly isUnsaved: boolean;
  /** The service refused the newest access token, and has not accepted it since. */
  readonly isUnauthorized: boolean;
}

/** How late a refresh may be before it is reported, ms. Retries succeed earlier unless the problem lasts. */
const LATE_MS = 10 * 60_000;

export function troublesOf(state: State | null, facts: Facts): Trouble[] {
  if (!state || state.movedTo !== null) return ['missing'];
  const { now } = facts;
  const lost = isLost(state, now);
  const life = state.pair.expiresIn * 1000;
  const isLate = now > dueAt(state, now, 0) + Math.min(LATE_MS, life / 10);
  const found: Readonly<Record<Trouble, boolean>> = {
    missing: false,
    lost,
    uncertain: !lost && isUncertain(state, now),
    unsaved: facts.isUnsaved,
    late: !lost && isLate,
    unauthorized: !lost && facts.isUnauthorized,
    ending: !lost && endIsNear(state, now) !== undefined,
  };
  return TROUBLES.filter((trouble) => found[trouble]);
}

/** What a running gateway reports about its tokens, for metrics. Times in seconds, 0 when past. */
export interface TokenHealth {
  readonly generation: number;
  readonly accessSecondsLeft: number;
  readonly refreshSecondsLeft: number;
  /** Since the pair was saved. */
  readonly age: number;
  readonly troubles: readonly Trouble[];
}

export function healthOf(state: State, facts: Facts): TokenHealth {
  const left = (end: number) => Math.max(0, (end - facts.now) / 1000);
  return {
    generation: state.generation,
    accessSecondsLeft: left(state.expiresAt),
    // The service rejects a lost refresh token, however long it would have lived.
    refreshSecondsLeft: state.lost ? 0 : left(endsAt(state)),
    age: Math.max(0, (facts.now - state.savedAt) / 1000),
    troubles: troublesOf(state, facts),
  };
}

const DAY_MS = 86_400_000;
const WARNING_DAYS = [30, 14, 7, 3, 1];

/**
 * The warning that the remaining life of the refresh token has reached, in days. A refresh token with a shorter life
 * than usual has only those that leave it two thirds of its life.
 */
export function endIsNear(state: State, now: number): number | undefined {
  const left = endsAt(state) - now;
  const life = state.pair.refreshTokenExpiresIn * 1000;
  return WARNING_DAYS.filter((days) => days * DAY_MS <= life / 3).findLast(
    (days) => left <= days * DAY_MS,
  );
}
