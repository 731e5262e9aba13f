import { CLAIM_MS, dueAt, endsAt, isLost, isUncertain, type Claim, type State } from './state.ts';

/** What can be wrong with the tokens: the same words in `tokens status`, metrics, the log and the alerts. */
const CAUSES = {
  missing: 'The token store is empty.',
  lost:
    'The refresh token does not work any more. It has reached its end, was revoked, or is spent: an answer never arrived, another ' +
    'program used it, or the store was replaced by an older copy of it.',
  uncertain: 'A refresh got no clear answer, so the refresh token may be spent.',
  unsaved:
    'The newest pair is not in the store, only in the memory of a process or in an emergency file.',
  late: 'The refresh of the access token is overdue, or the store could not be read since the start.',
  unauthorized:
    'The service refuses an access token that should still work: it was revoked, somebody made a newer one, or the account that ' +
    'it belongs to was demoted or blocked.',
  ending: 'The refresh token was not renewed for long, and ends soon.',
};

export type Trouble = keyof typeof CAUSES;

export const TROUBLES = Object.keys(CAUSES) as readonly Trouble[];

/** What helps against each trouble, in the words of a program: its commands. `moved` is a kind of `missing`. */
export type Steps = Readonly<Record<Trouble | 'moved', string>>;

/** What is the case, for the operator. */
export function causeOf(trouble: Trouble, state: State | null): string {
  if (trouble !== 'missing' || state?.movedTo == null) return CAUSES[trouble];
  return `The token set was moved to another store (${state.movedTo}), and cannot be refreshed from this one.`;
}

/** The same, and the step that helps. */
export function lineOn(trouble: Trouble, state: State | null, steps?: Steps): string {
  const step = steps?.[trouble === 'missing' && state ? 'moved' : trouble];
  return [causeOf(trouble, state), ...(step === undefined ? [] : [step])].join(' ');
}

/** Says who may be refreshing, and what to do if that takes long. */
export function underWay({ by, until }: Claim): string {
  return (
    `${by} began a refresh at ${iso(until - CLAIM_MS)}, and has not saved its outcome. If its log says \`unsaved\`, repair the disk ` +
    `or the database, and do not stop it. If it has died, its claim ends at ${iso(until)}, and the refresh token is sent once more ` +
    'shortly before the access token ends.'
  );
}

/** ISO 8601. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** What a process knows besides the state. */
export interface Facts {
  /** The store's clock, ms. */
  readonly now: number;
  /** The store does not show the newest pair. */
  readonly isUnsaved: boolean;
  /** The service refused the newest access token, and has not accepted it since. Default: false */
  readonly isUnauthorized?: boolean;
  /** The store could not be read since the start, so that nobody knows whether it has tokens. Default: false */
  readonly isUnread?: boolean;
}

export function troublesOf(state: State | null, facts: Facts): Trouble[] {
  if (!state && facts.isUnread) return ['late'];
  if (!state || state.movedTo !== null) return ['missing'];
  const { now } = facts;
  const lost = isLost(state, now);
  const found: Readonly<Record<Trouble, boolean>> = {
    missing: false,
    lost,
    uncertain: !lost && isUncertain(state, now),
    unsaved: facts.isUnsaved,
    late: !lost && isLate(state, now),
    unauthorized: !lost && facts.isUnauthorized === true,
    ending: !lost && endIsNear(state, now) !== undefined,
  };
  return TROUBLES.filter((trouble) => found[trouble]);
}

/** How late a refresh may be before it is reported, ms. Retries succeed earlier unless the problem lasts. */
const LATE_MS = 10 * 60_000;
/** The same while callers wait for it. */
const LATE_FOR_CALLERS_MS = 30_000;
/** A claim or a refusal moves the time when the refresh token is due; it does not help callers after the expiry. */
function isLate(state: State, now: number): boolean {
  return now > state.expiresAt + LATE_FOR_CALLERS_MS || now > dueAt(state, now) + LATE_MS;
}

/** What a running gateway reports about its tokens, for metrics. */
export interface TokenHealth {
  readonly troubles: readonly Trouble[];
  /** Absent without tokens, like the times: seconds, 0 when past. */
  readonly generation?: number;
  readonly accessSecondsLeft?: number;
  /** 0 if the tokens are lost; 100 years if the service does not say when the refresh token ends. */
  readonly refreshSecondsLeft?: number;
}

export function healthOf(state: State | null, facts: Facts): TokenHealth {
  const troubles = troublesOf(state, facts);
  if (!state) return { troubles };
  const left = (end: number) => Math.max(0, (end - facts.now) / 1000);
  return {
    troubles,
    generation: state.generation,
    accessSecondsLeft: left(state.expiresAt),
    refreshSecondsLeft: state.lost ? 0 : left(endsAt(state)),
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
