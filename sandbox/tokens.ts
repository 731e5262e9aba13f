import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { problem, type Answer, type Route } from './http.ts';

interface TokenSet {
  readonly access_token: string;
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly refresh_token_expires_in: number;
  readonly token_type: 'bearer';
}

/** Seconds. */
const REFRESH_LIFETIME = 10_368_000;

/** Issues and refreshes the tokens of one administrator, and knows which of them are valid. */
export class TokenOffice {
  readonly #expiresIn: number;
  readonly #now: () => number;
  /** The access tokens that are not revoked, with the time of their expiry. */
  readonly #accessTokens = new Map<string, number>();
  /** The path that hands out the latest set. */
  linkPath = '';
  #createdAt = 0;
  #current!: TokenSet;
  #refreshExpiresAt = 0;
  /** Whether a token of the latest link was exchanged. */
  #refreshed = false;

  /**
   * @param expiresIn lifetime of access tokens, in seconds
   * @param now the clock, in milliseconds
   */
  constructor(expiresIn: number, now: () => number = Date.now) {
    this.#expiresIn = expiresIn;
    this.#now = now;
    this.makeNewSet();
  }

  /** An administrator makes a new token: nothing that was issued before works any more. Returns the new link's path. */
  makeNewSet(): string {
    this.revokeAccessTokens();
    this.linkPath = `/token_links/${secret('link')}`;
    this.#createdAt = this.#now();
    this.#refreshed = false;
    this.#current = this.#issue();
    return this.linkPath;
  }

  /** The administrator is demoted: no token is valid. The link still works, since the interface does not say otherwise. */
  revoke(): void {
    this.revokeAccessTokens();
    this.#refreshExpiresAt = 0;
  }

  revokeAccessTokens(): void {
    this.#accessTokens.clear();
  }

  openLink(path: string | undefined): Answer {
    if (path !== this.linkPath || this.#refreshed) {
      return problem(404, 'This link no longer works.');
    }
    // The interface leaves the unit of created_at open. Whole seconds since 1970 are assumed here.
    const created_at = Math.floor(this.#createdAt / 1000);
    return { status: 200, body: { ...this.#current, created_at } };
  }

  /**
   * Returns the 401 for a request without a valid access token. Only its detail `token_expired` is published;
   * `token_invalid` is an assumption.
   */
  refuse({ headers }: IncomingMessage): Answer | undefined {
    const [, token = ''] = /^bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
    const expiresAt = this.#accessTokens.get(token);
    if (expiresAt !== undefined && this.#now() < expiresAt) return undefined;
    const detail = expiresAt === undefined ? 'token_invalid' : 'token_expired';
    return { status: 401, body: { type: 'invalid_token', detail } };
  }

  /** Whether this is the refresh token that would be exchanged now. */
  accepts(refreshToken: string): boolean {
    return refreshToken === this.#current.refresh_token && this.#now() < this.#refreshExpiresAt;
  }

  /** Returns a new pair for the current refresh token, which is then spent; undefined for any other. */
  exchange(refreshToken: string): TokenSet | undefined {
    if (!this.accepts(refreshToken)) return undefined;
    this.#refreshed = true;
    return (this.#current = this.#issue());
  }

  #issue(): TokenSet {
    const now = this.#now();
    const access = secret('access');
    this.#accessTokens.set(access, now + this.#expiresIn * 1000);
    this.#refreshExpiresAt = now + REFRESH_LIFETIME * 1000;
    return {
      access_token: access,
      expires_in: this.#expiresIn,
      refresh_token: secret('refresh'),
      refresh_token_expires_in: REFRESH_LIFETIME,
      token_type: 'bearer',
    };
  }
}

/** POST /oauth/token. Only a form has fields: any other body is treated as one without a grant_type. */
export function tokenRoute(tokens: TokenOffice): Route {
  return async (request) => {
    const body = await text(request);
    const type = request.headers['content-type'] ?? '';
    const isForm = type.startsWith('application/x-www-form-urlencoded');
    const form = new URLSearchParams(isForm ? body : '');
    if (form.get('grant_type') !== 'refresh_token') {
      return refusal(
        'unsupported_grant_type',
        'The authorization grant type is not supported by the authorization server.',
      );
    }
    const set = tokens.exchange(form.get('refresh_token') ?? '');
    if (set) return { status: 200, body: set };
    return refusal('invalid_grant', 'Refresh token is invalid, expired or revoked.');
  };
}

function refusal(error: string, error_description: string): Answer {
  return { status: 400, body: { error, error_description } };
}

/** Recognizable, so that a token in the wrong place can be found. */
function secret(kind: 'access' | 'refresh' | 'link'): string {
  return `sandbox-${kind}-${randomBytes(32).toString('base64url')}`;
}
