import type { Clock } from '../clock.ts';
import {
  accessLeft,
  expiryOf,
  isSamePair,
  waitsForExpiry,
  type HeldTokens,
} from './held-tokens.ts';
import type { AccessVerdict, CheckAccess } from './service/auth-check.ts';

/**
 * Some services refuse to exchange a refresh token before its access token has expired, with the answer that a spent
 * refresh token gets, and keep it valid. So a refusal while the access token works means early or spent; and at such a
 * service the refresh token is sent only when the access token does not work any more.
 */
export interface EarlyRefusal {
  /**
   * What the refusal of an exchange means. Asks the service whether the access token works.
   *
   * @param knewExpired whether it was known when the exchange began that the access token had expired
   */
  judge(tokens: HeldTokens, knewExpired: boolean): Promise<Refusal>;
  /**
   * When it is looked whether the access token has expired, by `clock.elapsed()`.
   *
   * @param first when that is done first; default: at the expiry, and at once after an import
   */
  dueAt(tokens: HeldTokens, first?: number): number;
  /** Whether the refresh token is sent now. Asks the service, unless it is clear. */
  maySend(tokens: HeldTokens): Promise<boolean>;
  /** Seconds in which the refresh token is not sent again, whatever requests meet. */
  patience(tokens: HeldTokens): number;
}

export type Refusal =
  | 'spent'
  /** The access token works, or nothing is known to the contrary. */
  | 'early-or-spent'
  /** The access token has expired by now, and may have worked when the refresh token was sent. */
  | 'expired-since';

interface EarlyRefusalParts {
  checkAccess: CheckAccess;
  clock: Clock;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
/** The life of an access token began after the exchange that gave it. */
const SLACK_MS = 2_000;
/**
 * So often the service may refuse a refresh token after the expiry, if `/auth_check` does not confirm that: the clocks of
 * its servers may differ, and this process may know the expiry wrongly. With the pauses between, that is some minutes.
 */
const CONTRADICTIONS = 8;

export function createEarlyRefusal({ checkAccess, clock }: EarlyRefusalParts): EarlyRefusal {
  /** The access token that worked when it was looked at last. */
  let found: Found | undefined;
  /** The pair whose refusal after the expiry was doubted, once. */
  let doubted: HeldTokens | undefined;
  const known = (tokens: HeldTokens) =>
    found && isSamePair(found.tokens, tokens) ? found : undefined;

  return {
    judge: async (tokens, knewExpired) => {
      const access = accessAfter(await checkAccess(tokens.pair.accessToken));
      if (access === 'works' || (access === 'unclear' && !tokens.expired)) {
        const isDoubtful = access === 'works' ? tokens.expired : accessLeft(tokens, clock) <= 0;
        if (isDoubtful && (known(tokens) ?? NONE).contradictions >= CONTRADICTIONS) return 'spent';
        lookLater(tokens, isDoubtful);
        return 'early-or-spent';
      }
      if (access === 'ended') return 'spent';
      const isAgain = doubted && isSamePair(doubted, tokens);
      if (isAgain || (knewExpired && !waitsForExpiry(tokens))) return 'spent';
      // The endpoint that exchanges may have a slower clock than those that say that the access token has expired.
      doubted = tokens;
      return 'expired-since';
    },
    dueAt: (tokens, first = firstLook(tokens)) => {
      if (tokens.expired) return clock.elapsed();
      return known(tokens)?.until ?? first;
    },
    maySend: async (tokens) => {
      if (tokens.expired) return true;
      const access = accessAfter(await checkAccess(tokens.pair.accessToken));
      const hasExpired = clock.elapsed() >= expiryOf(tokens) + SLACK_MS;
      const mayWork = access === 'works' || (access === 'unclear' && !hasExpired);
      if (mayWork) lookLater(tokens);
      return !mayWork || isNearEnd(tokens);
    },
    patience: (tokens) => pauseAfter(known(tokens)?.looks ?? 0) / 1000,
  };

  /** Clocks differ, and the service may have told another life than it keeps to. */
  function lookLater(tokens: HeldTokens, isContradiction = false): void {
    const expiry = expiryOf(tokens);
    const now = clock.elapsed();
    const before = known(tokens) ?? NONE;
    const looks = before.looks + (now < expiry && !tokens.expired ? 0 : 1);
    const contradictions = before.contradictions + (isContradiction ? 1 : 0);
    found = { tokens, looks, contradictions, until: Math.max(expiry, now + pauseAfter(looks)) };
  }

  /** The end of the refresh token comes before that of the access token: then there is nothing to wait for. */
  function isNearEnd(tokens: HeldTokens): boolean {
    return clock.elapsed() >= expiryOf(tokens) && accessLeft(tokens, clock) > 0;
  }
}

/** How old the access token of an import is, is unknown. */
function firstLook(tokens: HeldTokens): number {
  return tokens.imported && !tokens.refusedEarly ? tokens.refreshAt : expiryOf(tokens);
}

interface Found {
  readonly tokens: HeldTokens;
  /** How often the access token worked when it should have expired. */
  readonly looks: number;
  /** How often the refresh token was refused although the access token should have expired. */
  readonly contradictions: number;
  /** When it is looked again, by `clock.elapsed()`. */
  readonly until: number;
}

const NONE = { looks: 0, contradictions: 0 };

/** What the service says of an access token; a verdict about its user says nothing of it. */
function accessAfter(verdict: AccessVerdict): 'works' | 'expired' | 'ended' | 'unclear' {
  if (verdict.kind === 'works') return 'works';
  if (verdict.kind === 'unknown' || !verdict.detail.startsWith('token_')) return 'unclear';
  return verdict.detail === 'token_expired' ? 'expired' : 'ended';
}

function pauseAfter(looks: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, looks - 1));
}
