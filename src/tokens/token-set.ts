/** What the service hands out: one access token and the single-use refresh token that follows it. */
export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Seconds from the refresh that gave this pair. */
  readonly expiresIn: number;
  /** Seconds from the refresh that gave this pair. */
  readonly refreshTokenExpiresIn: number;
  /** Name given in the personal account, where the answer told it. */
  readonly name: string | null;
}

const A_DAY = 86_400;
const A_HUNDRED_AND_TWENTY_DAYS = 10_368_000;

/**
 * Reads the JSON of a token link or of a refresh (interface, 2.1). Undefined when it is not a token set.
 *
 * Two non-empty token strings are enough: the refresh token that was sent is spent by now, so an odd
 * `expires_in` is no reason to throw the new one away. Lifetimes that make no sense become the defaults.
 */
export function readTokenSet(document: unknown): TokenPair | undefined {
  if (typeof document !== 'object' || document === null) return undefined;
  const set = document as Record<string, unknown>;
  const { access_token: accessToken, refresh_token: refreshToken, name } = set;
  if (!isToken(accessToken) || !isToken(refreshToken)) return undefined;
  return {
    accessToken,
    refreshToken,
    expiresIn: lifetime(set['expires_in'], A_DAY),
    refreshTokenExpiresIn: lifetime(set['refresh_token_expires_in'], A_HUNDRED_AND_TWENTY_DAYS),
    name: typeof name === 'string' ? name : null,
  };
}

function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

function lifetime(seconds: unknown, fallback: number): number {
  // Less than a second is no life either: it would be rotated without end.
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 1
    ? seconds
    : fallback;
}
