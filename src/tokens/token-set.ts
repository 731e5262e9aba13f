/** An access token, and the single-use refresh token that can be exchanged for the next pair. */
export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Seconds from the refresh that gave this pair. */
  readonly expiresIn: number;
  /** Seconds from the refresh that gave this pair. */
  readonly refreshTokenExpiresIn: number;
  /** Name given in the personal account, if the answer has it. */
  readonly name: string | null;
}

/** The parts of a pair that an answer has; lifetimes that make no sense are left out. */
export interface Grant {
  readonly accessToken: string | undefined;
  readonly refreshToken: string | undefined;
  readonly expiresIn: number | undefined;
  readonly refreshTokenExpiresIn: number | undefined;
  readonly name: string | null;
}

/** An answer of the token endpoint, as received. */
export interface RawAnswer {
  /** 0 when the answer was not HTTP. */
  readonly status: number;
  readonly contentEncoding: string | undefined;
  readonly body: Buffer;
}

export const A_DAY = 86_400;
export const A_HUNDRED_AND_TWENTY_DAYS = 10_368_000;

/**
 * Reads the JSON of a refresh (interface, 2.1). Undefined when there is no token in it.
 *
 * One non-empty token string is enough, whatever the rest looks like: the refresh token that was sent is
 * spent by now, so an odd `expires_in` is no reason to throw the new one away.
 */
export function readGrant(document: unknown): Grant | undefined {
  if (typeof document !== 'object' || document === null) return undefined;
  const set = document as Record<string, unknown>;
  const accessToken = token(set['access_token']);
  const refreshToken = token(set['refresh_token']);
  if (accessToken === undefined && refreshToken === undefined) return undefined;
  return {
    accessToken,
    refreshToken,
    expiresIn: lifetime(set['expires_in']),
    refreshTokenExpiresIn: refreshLifetime(set['refresh_token_expires_in']),
    name: typeof set['name'] === 'string' ? set['name'] : null,
  };
}

/** Reads the JSON of a token link (interface, 2.1). Undefined when it is not a whole token set. */
export function readTokenSet(document: unknown): TokenPair | undefined {
  const grant = readGrant(document);
  if (grant?.accessToken === undefined || grant.refreshToken === undefined) return undefined;
  return {
    accessToken: grant.accessToken,
    refreshToken: grant.refreshToken,
    expiresIn: grant.expiresIn ?? A_DAY,
    refreshTokenExpiresIn: grant.refreshTokenExpiresIn ?? A_HUNDRED_AND_TWENTY_DAYS,
    name: grant.name,
  };
}

function token(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

function lifetime(seconds: unknown): number | undefined {
  // With a life of less than a second, it would be refreshed without end.
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 1
    ? seconds
    : undefined;
}

/**
 * A refresh token is needed when its access token has expired. With a life of less than ten minutes it could not
 * outlast a restart: such a number is a mistake, or in another unit. Following it would mean refreshing all the time, or
 * giving up a refresh token that works.
 */
const SHORTEST_REFRESH_LIFE_S = 600;

function refreshLifetime(seconds: unknown): number | undefined {
  const life = lifetime(seconds);
  return life !== undefined && life >= SHORTEST_REFRESH_LIFE_S ? life : undefined;
}
