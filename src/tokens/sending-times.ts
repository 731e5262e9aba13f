import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import {
  accessLeft,
  expiryOf,
  isSamePair,
  isUncertain,
  replayAt,
  waitsForExpiry,
  type HeldTokens,
  type UncertainTokens,
} from './held-tokens.ts';
import type { AccessVerdict, CheckAccess } from './service/auth-check.ts';
import { uncertainError } from './token-errors.ts';

/** What the refusal of an exchange means. */
export type Refusal =
  | 'spent'
  /** The access token works, or nothing is known to the contrary. */
  | 'early-or-spent'
  /** The access token has expired by now, and may have worked when the refresh token was sent. */
  | 'expired-since';

interface Parts {
  checkAccess: CheckAccess;
  clock: Clock;
  log: Logger;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
/** An access token's life begins a little later than the exchange that returned it. */
const SLACK_MS = 2_000;
/**
 * How often the service may refuse a refresh token after the expiry while `/auth_check` does not confirm the expiry: the
 * clocks of its servers may differ, or the expiry known here may be wrong. With the pauses between, this takes minutes.
 */
const CONTRADICTIONS = 8;

/**
 * When a refresh token is sent: ahead of the expiry of its access token, except for two cases.
 *
 * Uncertain: an exchange ended without a clear answer. As long as the access token works, there is something to lose (some
 * services revoke everything when a refresh token is sent twice), so it is sent once more only when the access token is
 * near its end, or does not work.
 *
 * Refused early: some services refuse to exchange a refresh token before its access token has expired, with the answer
 * that a spent refresh token gets, and keep it valid. So a refusal while the access token works means early or spent; and
 * at such a service the refresh token is sent only when the access token does not work any more.
 */
export function createSendingTimes({ checkAccess, clock, log }: Parts) {
  /** The uncertain tokens whose access token was checked last. */
  let checked: { tokens: UncertainTokens; works: boolean } | undefined;
  /** The access token that worked after its expiry, or whose refresh token was refused. */
  let working: WorkingToken | undefined;
  /** The pair that is sent once more after a refusal that came after its expiry. */
  let retried: HeldTokens | undefined;

  return {
    /** When the next step is due, by `clock.elapsed()`. */
    dueAt: (tokens: HeldTokens): number => {
      const at = isUncertain(tokens) ? replayDueAt(tokens) : undefined;
      if (!waitsForExpiry(tokens)) return at ?? tokens.refreshAt;
      if (tokens.expired) return clock.elapsed();
      return stillWorking(tokens)?.until ?? at ?? firstCheckAt(tokens);
    },
    replayDueAt,
    /** Whether to send the refresh token now. Calls `/auth_check` if needed. @throws if its answer is not clear */
    maySend: async (tokens: HeldTokens): Promise<boolean> => {
      if (isUncertain(tokens) && !(await mustReplay(tokens))) return false;
      return !waitsForExpiry(tokens) || (await hasExpired(tokens));
    },
    /**
     * Returns what the refusal of an exchange means. Calls `/auth_check`.
     *
     * @param knewExpired whether the access token was known to have expired when the exchange began
     */
    judge: async (tokens: HeldTokens, knewExpired: boolean): Promise<Refusal> => {
      const access = accessAfter(await checkAccess(tokens.pair.accessToken));
      if (access === 'works' || (access === 'unclear' && !tokens.expired)) {
        const isContradicted = access === 'works' ? tokens.expired : accessLeft(tokens, clock) <= 0;
        const { contradictions } = stillWorking(tokens) ?? NONE;
        if (isContradicted && contradictions >= CONTRADICTIONS) return 'spent';
        checkLater(tokens, isContradicted);
        return 'early-or-spent';
      }
      if (access === 'ended') return 'spent';
      const isAgain = retried && isSamePair(retried, tokens);
      if (isAgain || (knewExpired && !waitsForExpiry(tokens))) return 'spent';
      // The clock of the token endpoint may be behind the clock by which the access token has expired.
      retried = tokens;
      return 'expired-since';
    },
    /** How long a refused refresh token is not sent again, seconds, even if requests meet an expired access token. */
    patience: (tokens: HeldTokens): number => pauseAfter(stillWorking(tokens)?.checks ?? 0) / 1000,
  };

  function replayDueAt(tokens: UncertainTokens): number {
    return lastCheck(tokens)?.works ? replayAt(tokens) : clock.elapsed();
  }

  async function mustReplay(tokens: UncertainTokens): Promise<boolean> {
    // The access token is near its end: nothing is left to lose, whether or not the service can be reached.
    if (clock.elapsed() >= replayAt(tokens)) return true;
    return !(lastCheck(tokens)?.works ?? (await check(tokens)));
  }

  async function check(tokens: UncertainTokens): Promise<boolean> {
    const { generation, pair } = tokens;
    const verdict = await checkAccess(pair.accessToken);
    if (verdict.kind === 'unknown') {
      throw uncertainError(new Error(`/auth_check gave no clear answer (${verdict.why})`));
    }
    const works = verdict.kind === 'works';
    checked = { tokens, works };
    const inSeconds = Math.max(0, Math.round((replayAt(tokens) - clock.elapsed()) / 1000));
    log.error(
      { trouble: 'uncertain', generation, ...(works ? { inSeconds } : { detail: verdict.detail }) },
      works
        ? 'An exchange of the refresh token ended without a clear answer, so the token may be spent. The access token ' +
            'works, and serves until it is near its end; then the refresh token is sent once more. To know it at once, ' +
            'run `tokens recover`.'
        : 'An exchange of the refresh token ended without a clear answer, and the access token does not work: ' +
            'the refresh token is sent once more.',
    );
    return works;
  }

  function lastCheck(tokens: UncertainTokens) {
    if (!checked || !isSamePair(checked.tokens, tokens)) return undefined;
    return checked.tokens.state.unanswered === tokens.state.unanswered ? checked : undefined;
  }

  async function hasExpired(tokens: HeldTokens): Promise<boolean> {
    if (tokens.expired) return true;
    const access = accessAfter(await checkAccess(tokens.pair.accessToken));
    const isLate = clock.elapsed() >= expiryOf(tokens) + SLACK_MS;
    const mayWork = access === 'works' || (access === 'unclear' && !isLate);
    if (mayWork) checkLater(tokens);
    return !mayWork || isNearEnd(tokens);
  }

  function stillWorking(tokens: HeldTokens) {
    return working && isSamePair(working.tokens, tokens) ? working : undefined;
  }

  /** Schedules the next check. Clocks differ, and the service may not keep to the lifetime that it stated. */
  function checkLater(tokens: HeldTokens, isContradiction = false): void {
    const expiry = expiryOf(tokens);
    const now = clock.elapsed();
    const before = stillWorking(tokens) ?? NONE;
    const checks = before.checks + (now < expiry && !tokens.expired ? 0 : 1);
    const contradictions = before.contradictions + (isContradiction ? 1 : 0);
    working = { tokens, checks, contradictions, until: Math.max(expiry, now + pauseAfter(checks)) };
  }

  /** Whether the refresh token expires before the access token does, so that waiting longer is pointless. */
  function isNearEnd(tokens: HeldTokens): boolean {
    return clock.elapsed() >= expiryOf(tokens) && accessLeft(tokens, clock) > 0;
  }
}

/** The age of an imported access token is unknown. */
function firstCheckAt(tokens: HeldTokens): number {
  return tokens.imported && !tokens.refusedEarly ? tokens.refreshAt : expiryOf(tokens);
}

interface WorkingToken {
  readonly tokens: HeldTokens;
  /** How often the access token worked when it should have expired. */
  readonly checks: number;
  /** How often the refresh token was refused although the access token should have expired. */
  readonly contradictions: number;
  /** When the access token is checked again, by `clock.elapsed()`. */
  readonly until: number;
}

const NONE = { checks: 0, contradictions: 0 };

/** The state of an access token. A verdict about its user does not show it. */
function accessAfter(verdict: AccessVerdict): 'works' | 'expired' | 'ended' | 'unclear' {
  if (verdict.kind === 'works') return 'works';
  if (verdict.kind === 'unknown' || !verdict.detail.startsWith('token_')) return 'unclear';
  return verdict.detail === 'token_expired' ? 'expired' : 'ended';
}

function pauseAfter(checks: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, checks - 1));
}
