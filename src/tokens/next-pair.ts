import type { Clock } from '../clock.ts';
import { accessLeft, refreshLeft, type Head } from './head.ts';
import { A_DAY, A_HUNDRED_AND_TWENTY_DAYS, type Grant, type TokenPair } from './token-set.ts';
import type { PairOutcome } from './store/token-store.ts';

/** An access token that did not come stays the one before; another is asked for when that ends, and not at once. */
const SOON_S = 600;

/**
 * The pair that follows the head, from what the service answered. Nothing that came is thrown away: a
 * refresh token that is missing stays the one before, as OAuth has it (RFC 6749, section 6), with the end
 * that it had.
 */
export function nextPair(
  grant: Grant,
  head: Head,
  clock: Clock,
): { pair: TokenPair; outcome: PairOutcome } {
  const { accessToken = head.pair.accessToken, refreshToken = head.pair.refreshToken } = grant;
  const outcome = outcomeOf(grant, head);
  return {
    outcome,
    pair: {
      accessToken,
      refreshToken,
      expiresIn:
        outcome === 'without-access-token'
          ? Math.max(SOON_S, secondsOf(accessLeft(head, clock)))
          : (grant.expiresIn ?? A_DAY),
      refreshTokenExpiresIn:
        grant.refreshTokenExpiresIn ??
        (outcome === 'without-refresh-token'
          ? secondsOf(refreshLeft(head, clock))
          : A_HUNDRED_AND_TWENTY_DAYS),
      name: grant.name ?? head.pair.name,
    },
  };
}

function outcomeOf({ accessToken, refreshToken }: Grant, { pair }: Head): PairOutcome {
  if (accessToken === undefined) return 'without-access-token';
  if (refreshToken === undefined) return 'without-refresh-token';
  return refreshToken === pair.refreshToken ? 'same-refresh-token' : 'rotated';
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.round(ms / 1000));
}
