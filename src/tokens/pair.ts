/** An access token, and the single-use refresh token that can be exchanged for the next pair. */
export interface Pair {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Lifetimes in seconds, counted from the exchange that returned this pair. */
  readonly expiresIn: number;
  readonly refreshTokenExpiresIn: number;
}

/** Lifetimes in seconds, for an answer without them. */
export interface Lifetimes {
  readonly accessToken: number;
  readonly refreshToken: number;
}

const DAY = 86_400;
/** Of the recruiting service (recruiting-service-api.md, 2.1). */
const DOCUMENTED: Lifetimes = { accessToken: DAY, refreshToken: 120 * DAY };
/** 100 years. Times that follow from a much longer life are no numbers in JSON, and would be due at once. */
export const LONGEST_LIFE = 36_525 * DAY;

/**
 * Reads the JSON of a token link or of an exchange. One token is enough: the refresh token that was sent is spent, so
 * whatever arrived is kept.
 *
 * @param before the pair that was exchanged: an answer without a refresh token leaves it valid (RFC 6749, section 6)
 * @param lifetimes in the place of those that are missing or odd
 */
export function readPair(
  document: unknown,
  before?: Pair,
  lifetimes = DOCUMENTED,
): Pair | undefined {
  if (typeof document !== 'object' || document === null) return undefined;
  const set = document as Record<string, unknown>;
  const received = { access: text(set['access_token']), refresh: text(set['refresh_token']) };
  const accessToken = received.access ?? before?.accessToken;
  const refreshToken = received.refresh ?? before?.refreshToken;
  const hasToken = received.access !== undefined || received.refresh !== undefined;
  if (!hasToken || accessToken === undefined || refreshToken === undefined) return undefined;
  return {
    accessToken,
    refreshToken,
    expiresIn: seconds(set['expires_in']) ?? lifetimes.accessToken,
    refreshTokenExpiresIn: seconds(set['refresh_token_expires_in']) ?? lifetimes.refreshToken,
  };
}

/** Parses text that may begin with a byte order mark; undefined if it is not JSON. */
export function parseJson(source: string): unknown {
  try {
    return JSON.parse(source.replace(/^\uFEFF/, ''));
  } catch {
    return undefined;
  }
}

/** Blanks around a token are never part of it (RFC 6750, section 2.1), and would make a header invalid. */
function text(value: unknown): string | undefined {
  const trimmed = typeof value === 'string' ? value.trim() : '';
  return trimmed === '' ? undefined : trimmed;
}

function seconds(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && number >= 1 && number <= LONGEST_LIFE ? number : undefined;
}
