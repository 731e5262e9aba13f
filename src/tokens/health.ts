import { LONGEST_LIFE } from './pair.ts';
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

/** The names and the steps that the operator of a program knows. */
export interface Wording {
  /** What has the store open, beside this process. */
  readonly users: string;
  /** What callers get whose access token the service refuses. */
  readonly refusal: string;
  /** How the log reports an empty store: to a program that imports the first pair itself, it is nothing new. */
  readonly missing: 'error' | 'info';
  /** Where the program is told these. */
  readonly settings: { readonly store: string; readonly key: string; readonly service: string };
  /**
   * What helps, each with a full stop. Late since the start is `unread`, late after refusals is `refused`. `claimed`: once
   * the claim of a process that died has ended.
   */
  readonly steps: Readonly<Record<Trouble | 'moved' | 'unread' | 'claimed' | 'refused', Step>>;
}

interface Step {
  /** What to try before the step. */
  readonly first?: string;
  /** The one step that helps. */
  readonly step: string;
}

/** For a program with its own settings and commands, or none. */
export const PLAIN_WORDING: Wording = {
  users: 'the other processes',
  refusal: 'the 401 of the service',
  missing: 'info',
  settings: {
    store: '`store`',
    key: '`keys`',
    service: '`endpoint`',
  },
  steps: {
    missing: { step: 'If `store` names the one that you mean, import a pair.' },
    moved: { step: 'Use that one.' },
    lost: {
      step: 'Import a new pair. Never restore a backup of the store: its refresh token is spent.',
    },
    uncertain: {
      step:
        'A running process sends the refresh token once more in the last minutes of the access token, or right away if it has ' +
        'expired.',
    },
    unsaved: {
      step:
        'Repair the disk or the database before you stop that process: it saves the pair by itself. The next start saves what is ' +
        'in a file.',
    },
    late: { step: 'The log says what prevents it.' },
    unread: { step: 'The log says why.' },
    claimed: { step: 'Then another process sends the refresh token once more.' },
    refused: {
      step: 'If you know that the tokens were revoked or spent, import a new pair with `replace: true`.',
    },
    unauthorized: {
      step: 'Check the account; if it is in order, import a new pair with `replace: true`.',
    },
    ending: { step: 'Start a process that keeps it, and read its log.' },
  },
};

/** What an operator reads about a trouble. */
interface Told extends Step {
  /** What is the case. */
  readonly what: string;
  /** What callers get once the access token does not work any more: a code, unless it is the refusal of the service. */
  readonly code?: string;
}

const TOLD: Readonly<Record<Trouble, Omit<Told, keyof Step>>> = {
  missing: { what: 'The token store is empty.', code: 'TOKENS_MISSING' },
  lost: {
    what:
      'The service refuses the refresh token for good. It was revoked, or it is spent: an answer never arrived, another program ' +
      'used it, or the store was replaced by an older copy of it.',
    code: 'TOKENS_LOST',
  },
  uncertain: {
    what: 'A refresh got no clear answer, so the refresh token may be spent.',
    code: 'UPSTREAM_UNREACHABLE',
  },
  unsaved: {
    what: 'The newest pair is not in the store, only in the memory of a process or in an emergency file.',
    code: 'INTERNAL_SERVER_ERROR',
  },
  late: {
    what: 'The refresh of the access token is overdue.',
    code: 'UPSTREAM_UNREACHABLE or INTERNAL_SERVER_ERROR',
  },
  unauthorized: {
    what:
      'The service refuses an access token that should still work: it was revoked, somebody made a newer one, or the account that ' +
      'it belongs to lost its rights.',
  },
  ending: {
    what: 'The refresh token was not renewed for long, and ends soon.',
    code: 'UPSTREAM_UNREACHABLE',
  },
};

/** What is the case, what it means for callers now, and the step that helps, each with a full stop. */
export interface Advice {
  readonly what: string;
  readonly callers: string;
  readonly first?: string;
  readonly step: string;
}

/**
 * @param now the store's clock, ms; Infinity: the access token does not work
 * @param mistake why the service refuses the exchange itself
 */
export function adviceOn(
  trouble: Trouble,
  state: State | null,
  now: number,
  wording: Wording,
  mistake?: string,
): Advice {
  const common: Told = { ...TOLD[trouble], ...wording.steps[trouble] };
  const special =
    trouble === 'unauthorized' && mistake !== undefined
      ? mistaken(mistake)
      : specialOf(trouble, state, now, wording);
  const { code, ...told } = { ...common, ...special };
  const callers =
    code !== undefined && state !== null && now < state.expiresAt
      ? `Callers are served until the access token expires, and then get ${code}.`
      : `Callers get ${code ?? wording.refusal}.`;
  return { ...told, callers };
}

function mistaken(why: string): Told {
  return {
    what: `The access token cannot be refreshed: ${why}.`,
    code: 'UPSTREAM_UNAUTHORIZED',
    step: 'A running process tries again every few minutes.',
  };
}

/** The same as one line. */
export function lineOn(...of: Parameters<typeof adviceOn>): string {
  const { what, callers, first, step } = adviceOn(...of);
  return [what, callers, first, step].filter((part) => part !== undefined).join(' ');
}

/** Some troubles have several causes, which the state tells apart. */
function specialOf(
  trouble: Trouble,
  state: State | null,
  now: number,
  wording: Wording,
): Partial<Told> {
  if (trouble === 'late') return specialOfLate(state, now, wording);
  if (!state) return {};
  const { movedTo, lost, claim, generation } = state;
  if (trouble === 'missing' && movedTo !== null) {
    return {
      what: `The token set was moved to another store (${movedTo}), and cannot be refreshed from this one.`,
      ...wording.steps.moved,
    };
  }
  if (trouble === 'uncertain' && isLive(claim, now)) {
    return { what: underWay(claim!), step: afterClaim(claim!, wording) };
  }
  if (trouble === 'uncertain' && claim) {
    const refresh = `The refresh of generation ${generation} by ${claim.by}`;
    const what = `${refresh} got no clear answer (${whyUnclear(claim)}), so the refresh token may be spent.`;
    return { what };
  }
  if (trouble === 'lost' && !lost) {
    return { what: 'The refresh token has reached its end by the clock of the token store.' };
  }
  return {};
}

function specialOfLate(state: State | null, now: number, wording: Wording): Partial<Told> {
  const { steps } = wording;
  if (!state) {
    return {
      what: 'This process could not read its token store since it started.',
      code: 'INTERNAL_SERVER_ERROR',
      ...steps.unread,
    };
  }
  const { refusals, claim, expiresAt } = state;
  const expiry = now < expiresAt ? '' : 'The access token has expired. ';
  if (isLive(claim, now)) {
    const what = expiry + underWay(claim!);
    return { what, code: 'UPSTREAM_UNREACHABLE', step: afterClaim(claim!, wording) };
  }
  if (now < expiresAt) return {};
  if (refusals === 0) return { what: 'The access token has expired, and was not refreshed.' };
  return {
    what:
      `The access token has expired or was revoked, and the service has refused the refresh token ${times(refusals)}. Clocks may differ, so a ` +
      'running process sends it again for eleven minutes, and then reports the tokens as lost.',
    code: 'UPSTREAM_UNREACHABLE or UPSTREAM_UNAUTHORIZED',
    ...steps.refused,
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

export function afterClaim({ by, until }: Claim, { steps }: Wording): string {
  return (
    `If the log of ${by} says \`unsaved\`, repair the disk or the database, and do not stop it. If it has died, its claim ends at ` +
    `${iso(until)}. ${steps.claimed.step}`
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
  /** Why the service refuses the exchange itself, which only the operator can correct: the client, for example. */
  readonly mistake?: string | undefined;
}

export function troublesOf(state: State | null, facts: Facts): Trouble[] {
  if (!state && facts.isUnread) return ['late'];
  if (!state || state.movedTo !== null) return ['missing'];
  const { now } = facts;
  const lost = isLost(state, now);
  const isMistaken = facts.mistake !== undefined;
  const found: Readonly<Record<Trouble, boolean>> = {
    missing: false,
    lost,
    uncertain: !lost && (isUncertain(state, now) || isUnanswered(state, now)),
    unsaved: facts.isUnsaved,
    late: !lost && !isMistaken && isLate(state, now),
    unauthorized: !lost && (facts.isUnauthorized || isMistaken),
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
/** Callers wait a little longer, and get an error that says the same. */
const UNANSWERED_FOR_CALLERS_MS = 20_000;

function isUnanswered({ claim, expiresAt }: State, now: number): boolean {
  const patience = now < expiresAt ? LONG_EXCHANGE_MS : UNANSWERED_FOR_CALLERS_MS;
  return isLive(claim, now) && now - (claim!.until - CLAIM_MS) > patience;
}

/** A claim or a refusal moves the time when the refresh token is due; it does not help callers after the expiry. */
function isLate(state: State, now: number): boolean {
  const { expiresAt, refusals, pair } = state;
  const hasExpired = now >= expiresAt;
  if (hasExpired && refusals > 0) return true;
  const patience = hasExpired ? LATE_FOR_CALLERS_MS : LATE_MS;
  const due = Math.min(dueAt(state, now, 0), hasExpired ? expiresAt : Infinity);
  return now > due + Math.min(patience, pair.expiresIn * 100);
}

/** What a running gateway reports about its tokens, for metrics. Times in seconds, 0 when past. */
export interface TokenHealth extends Partial<PairHealth> {
  readonly troubles: readonly Trouble[];
  /** Why the service refuses the exchange itself: the client, for example. In its own words, where it sent some. */
  readonly mistake?: string;
}

interface PairHealth {
  readonly generation: number;
  readonly accessSecondsLeft: number;
  /** Absent if the end of the refresh token is not known. */
  readonly refreshSecondsLeft?: number;
  /** Since the pair was saved. */
  readonly age: number;
}

export function healthOf(state: State | null, facts: Facts): TokenHealth {
  const { now, mistake } = facts;
  return {
    troubles: troublesOf(state, facts),
    ...(mistake !== undefined && { mistake }),
    ...(state && pairHealthOf(state, now)),
  };
}

function pairHealthOf(state: State, now: number): PairHealth {
  const left = (end: number) => Math.max(0, (end - now) / 1000);
  const isKnown = state.lost || state.pair.refreshTokenExpiresIn < LONGEST_LIFE;
  return {
    generation: state.generation,
    accessSecondsLeft: left(state.expiresAt),
    // The service rejects a lost refresh token, however long it would have lived.
    ...(isKnown && { refreshSecondsLeft: state.lost ? 0 : left(endsAt(state)) }),
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
