import type { Clock } from '../clock.ts';
import { accessLeft, expiryOf, isSamePair, type HeldTokens } from './held-tokens.ts';
import type { CheckAccess } from './service/auth-check.ts';

/**
 * Some services refuse to exchange a refresh token before its access token has expired, with the answer that a spent
 * refresh token gets, and keep it valid. So a refusal while the access token works means early or spent; and at such a
 * service the refresh token is sent only when the access token does not work any more.
 */
export interface EarlyRefusal {
  /** Whether a refusal may mean that the exchange was too early. Asks the service whether the access token works. */
  mayBeEarly(tokens: HeldTokens): Promise<boolean>;
  /** When it is looked whether the access token has expired, by `clock.elapsed()`. */
  dueAt(tokens: HeldTokens): number;
  /** Whether the refresh token is sent now. Asks the service, unless it is clear. */
  maySend(tokens: HeldTokens): Promise<boolean>;
  /** Seconds in which the refresh token is not sent again, whatever requests meet. */
  patience(tokens: HeldTokens): number;
}

interface EarlyRefusalParts {
  checkAccess: CheckAccess;
  clock: Clock;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
/**
 * So often the service may refuse a refresh token as if it came too early, although requests meet `token_expired`: the
 * clocks of its servers may differ by some seconds.
 */
const CONTRADICTIONS = 4;

export function createEarlyRefusal({ checkAccess, clock }: EarlyRefusalParts): EarlyRefusal {
  /** The access token that worked when it was looked at last. */
  let found: Found | undefined;
  const known = (tokens: HeldTokens) =>
    found && isSamePair(found.tokens, tokens) ? found : undefined;

  return {
    mayBeEarly: async (tokens) => {
      const verdict = await checkAccess(tokens.pair.accessToken);
      const mayWork = tokens.expired
        ? verdict.kind === 'works' && (known(tokens)?.contradictions ?? 0) < CONTRADICTIONS
        : verdict.kind === 'works' || (verdict.kind === 'unknown' && accessLeft(tokens, clock) > 0);
      if (mayWork) lookLater(tokens);
      return mayWork;
    },
    dueAt: (tokens) => {
      if (tokens.expired) return clock.elapsed();
      // How old the access token of an import is, is unknown.
      const first = tokens.imported && !tokens.refusedEarly ? tokens.refreshAt : expiryOf(tokens);
      return known(tokens)?.until ?? first;
    },
    maySend: async (tokens) => {
      if (tokens.expired) return true;
      const verdict = await checkAccess(tokens.pair.accessToken);
      const hasExpired = clock.elapsed() >= expiryOf(tokens);
      const mayWork = verdict.kind === 'works' || (verdict.kind === 'unknown' && !hasExpired);
      if (mayWork) lookLater(tokens);
      return !mayWork || isNearEnd(tokens);
    },
    patience: (tokens) => pauseAfter(known(tokens)?.looks ?? 0) / 1000,
  };

  /** Clocks differ, and the service may have told another life than it keeps to. */
  function lookLater(tokens: HeldTokens): void {
    const expiry = expiryOf(tokens);
    const now = clock.elapsed();
    const before = known(tokens) ?? { looks: 0, contradictions: 0 };
    const looks = before.looks + (now < expiry && !tokens.expired ? 0 : 1);
    const contradictions = before.contradictions + (tokens.expired ? 1 : 0);
    found = { tokens, looks, contradictions, until: Math.max(expiry, now + pauseAfter(looks)) };
  }

  /** The end of the refresh token comes before that of the access token: then there is nothing to wait for. */
  function isNearEnd(tokens: HeldTokens): boolean {
    return clock.elapsed() >= expiryOf(tokens) && accessLeft(tokens, clock) > 0;
  }
}

interface Found {
  readonly tokens: HeldTokens;
  /** How often the access token worked when it should have expired. */
  readonly looks: number;
  /** How often it worked although a request had met `token_expired`. */
  readonly contradictions: number;
  /** When it is looked again, by `clock.elapsed()`. */
  readonly until: number;
}

function pauseAfter(looks: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, looks - 1));
}
