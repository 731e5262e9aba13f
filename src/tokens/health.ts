import {
  CLAIM_MS,
  dueAt,
  endsAt,
  isLive,
  isLost,
  isUncertain,
  type Claim,
  type State,
} from './state.ts';

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

/** What an operator reads about a trouble. */
interface Told {
  /** What is the case. */
  readonly what: string;
  /** The code that callers get once the access token does not work any more. */
  readonly code: string;
  /** What to try before the step. */
  readonly first?: string;
  /** The one step that helps. */
  readonly step: string;
}

const NEW_TOKEN =
  'have an administrator make a new token in the personal account of the recruiting service, and run `tokens import <link>';
const RECOVER = 'Run `tokens recover`, which looks for a pair that arrived and was not saved.';

const TOLD: Readonly<Record<Trouble, Told>> = {
  missing: {
    what: 'The token store is empty.',
    code: 'TOKENS_MISSING',
    step: `If TOKEN_STORE names the store that you mean, ${NEW_TOKEN}\`.`,
  },
  lost: {
    what:
      'The service refuses the refresh token for good. It was revoked, or it is spent: an answer never arrived, another program ' +
      'used it, or the store was replaced by an older copy of it.',
    code: 'TOKENS_LOST',
    first: RECOVER,
    step: `Without one, ${NEW_TOKEN}\`. Never restore a backup: its refresh token is spent.`,
  },
  uncertain: {
    what: 'A refresh got no clear answer, so the refresh token may be spent.',
    code: 'UPSTREAM_UNREACHABLE',
    step:
      'A running gateway sends the refresh token once more in the last minutes of the access token, or right away if it has ' +
      'expired. Run `tokens recover` to do that now.',
  },
  unsaved: {
    what: 'The newest pair is not in the store, only in the memory of a process or in an emergency file.',
    code: 'INTERNAL_SERVER_ERROR',
    step:
      'Repair the disk or the database before you stop that process: it saves the pair by itself. `tokens recover` and the next ' +
      'start save what is in a file.',
  },
  late: {
    what: 'The refresh of the access token is overdue.',
    code: 'UPSTREAM_UNREACHABLE',
    step: 'Run `tokens refresh`, which says what prevents it.',
  },
  unauthorized: {
    what:
      'The service refuses an access token that should still work: it was revoked, somebody made a newer one, or the administrator ' +
      'who made it was demoted or blocked.',
    code: 'UPSTREAM_UNAUTHORIZED',
    step: `Have the account checked; if it is in order, ${NEW_TOKEN} --replace\`.`,
  },
  ending: {
    what: 'The refresh token was not renewed for long, and ends soon.',
    code: 'UPSTREAM_UNREACHABLE',
    step: 'Start a gateway, or run `tokens refresh` and read its output.',
  },
};

/** What is the case, what it means for callers now, and the step that helps, each with a full stop. */
interface Advice {
  readonly what: string;
  readonly callers: string;
  readonly first?: string;
  readonly step: string;
}

/** @param now the store's clock, ms; Infinity: the access token does not work */
export function adviceOn(trouble: Trouble, state: State | null, now: number): Advice {
  const { code, ...told } = { ...TOLD[trouble], ...specialOf(trouble, state, now) };
  const isServed = state !== null && now < state.expiresAt && trouble !== 'unauthorized';
  const callers = isServed
    ? `Callers are served until the access token expires, and then get ${code}.`
    : `Callers get ${code}.`;
  return { ...told, callers };
}

/** The same as one line. */
export function lineOn(trouble: Trouble, state: State | null, now: number): string {
  const { what, callers, first, step } = adviceOn(trouble, state, now);
  return [what, callers, first, step].filter((part) => part !== undefined).join(' ');
}

/** Some troubles have several causes, which the state tells apart. */
function specialOf(trouble: Trouble, state: State | null, now: number): Partial<Told> {
  if (trouble === 'late') return specialOfLate(state, now);
  if (!state) return {};
  const { movedTo, lost, claim, generation } = state;
  if (trouble === 'missing' && movedTo !== null) {
    return {
      what: `The token set was moved to another store (${movedTo}), and cannot be refreshed from this one.`,
      step: 'Set TOKEN_STORE to that one for every gateway, and restart it.',
    };
  }
  if (trouble === 'lost' && !lost) {
    return { what: 'The refresh token has reached its end by the clock of the token store.' };
  }
  if (trouble === 'uncertain' && claim) {
    const refresh = `The refresh of generation ${generation} by ${claim.by}`;
    const what = `${refresh} got no clear answer (${whyUnclear(claim)}), so the refresh token may be spent.`;
    return { what };
  }
  return {};
}

function specialOfLate(state: State | null, now: number): Partial<Told> {
  if (!state) {
    return {
      what: 'This gateway could not read its token store since it started.',
      code: 'INTERNAL_SERVER_ERROR',
      step: 'Run `tokens status`, which says why.',
    };
  }
  const { refusals, claim, expiresAt } = state;
  const expiry = now < expiresAt ? '' : 'The access token has expired. ';
  if (isLive(claim, now)) return { what: expiry + underWay(claim!), step: afterClaim(claim!) };
  if (now < expiresAt) return {};
  if (refusals === 0) return { what: 'The access token has expired, and was not refreshed.' };
  return {
    what:
      `The access token has expired, and the service has refused the refresh token ${times(refusals)}. Clocks may differ, so a ` +
      'running gateway sends it again for eleven minutes, and then reports the tokens as lost.',
    code: 'UPSTREAM_UNREACHABLE or UPSTREAM_UNAUTHORIZED',
    first: RECOVER,
    step: `Without one, and if you know that the tokens were revoked or spent, ${NEW_TOKEN} --replace\`.`,
  };
}

/** Why an exchange has no outcome. */
export function whyUnclear({ unclear }: Claim): string {
  return unclear ?? 'its process ended before the answer was saved';
}

/** Says who may be refreshing. */
export function underWay({ by, until }: Claim): string {
  return `${by} began a refresh at ${iso(until - CLAIM_MS)}, and has not saved its outcome.`;
}

export function afterClaim({ by, until }: Claim): string {
  return (
    `If the log of ${by} says \`unsaved\`, repair the disk or the database, and do not stop it. If it has died, its claim ends at ` +
    `${iso(until)}: run \`tokens recover\` then.`
  );
}

/** ISO 8601. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** How often. */
export function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** What a process knows besides the state. */
export interface Facts {
  /** The store's clock, ms. */
  readonly now: number;
  /** The store does not show the newest pair. */
  readonly isUnsaved: boolean;
  /** The service refused the newest access token, and has not accepted it since. */
  readonly isUnauthorized: boolean;
  /** The store could not be read since the start, so that nobody knows whether it has tokens. */
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
    unauthorized: !lost && facts.isUnauthorized,
    ending: !lost && endIsNear(state, now) !== undefined,
  };
  return TROUBLES.filter((trouble) => found[trouble]);
}

/** How late a refresh may be before it is reported, ms. Retries succeed earlier unless the problem lasts. */
const LATE_MS = 10 * 60_000;
/** The same while callers wait for it. */
const LATE_FOR_CALLERS_MS = 30_000;
/** An exchange takes a second. One without an outcome after this may be of a process that died, or cannot save its pair. */
const LONG_EXCHANGE_MS = 60_000;

/** A claim or a refusal moves the time when the refresh token is due; it does not help callers after the expiry. */
function isLate(state: State, now: number): boolean {
  const { expiresAt, refusals, pair, claim } = state;
  if (isLive(claim, now) && now - (claim!.until - CLAIM_MS) > LONG_EXCHANGE_MS) return true;
  const hasExpired = now >= expiresAt;
  if (hasExpired && refusals > 0) return true;
  const patience = hasExpired ? LATE_FOR_CALLERS_MS : LATE_MS;
  const due = Math.min(dueAt(state, now, 0), hasExpired ? expiresAt : Infinity);
  return now > due + Math.min(patience, pair.expiresIn * 100);
}

/** What a running gateway reports about its tokens, for metrics. Times in seconds, 0 when past. */
export interface TokenHealth extends Partial<PairHealth> {
  readonly troubles: readonly Trouble[];
}

interface PairHealth {
  readonly generation: number;
  readonly accessSecondsLeft: number;
  readonly refreshSecondsLeft: number;
  /** Since the pair was saved. */
  readonly age: number;
}

export function healthOf(state: State | null, facts: Facts): TokenHealth {
  return { troubles: troublesOf(state, facts), ...(state && pairHealthOf(state, facts.now)) };
}

function pairHealthOf(state: State, now: number): PairHealth {
  const left = (end: number) => Math.max(0, (end - now) / 1000);
  return {
    generation: state.generation,
    accessSecondsLeft: left(state.expiresAt),
    // The service rejects a lost refresh token, however long it would have lived.
    refreshSecondsLeft: state.lost ? 0 : left(endsAt(state)),
    age: Math.max(0, (now - state.savedAt) / 1000),
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

/** Days until the refresh token ends, rounded up. */
export function daysLeft(state: State, now: number): number {
  return Math.max(0, Math.ceil((endsAt(state) - now) / DAY_MS));
}
