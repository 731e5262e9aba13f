import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { problem } from './answer.ts';
import type { Answer } from './answer.ts';

export interface TokenOptions {
  /** Seconds. */
  expiresIn: number;
  /** Seconds. */
  refreshExpiresIn: number;
  revokeOnRefresh: boolean;
  now: () => number;
}

export interface TokenSet {
  name: string;
  access_token: string;
  expires_in: number;
  refresh_token: string;
  refresh_token_expires_in: number;
  token_type: 'bearer';
}

/** Issues and refreshes the tokens of one administrator, and knows which of them are valid. */
export class TokenOffice {
  readonly #options: TokenOptions;
  readonly #accessTokens = new Map<string, AccessToken>();
  #linkPath!: string;
  #createdAt!: number;
  #current!: TokenSet;
  #refreshExpiresAt!: number;
  #refreshed!: boolean;

  constructor(options: TokenOptions) {
    this.#options = options;
    this.makeNewSet();
  }

  /** The path that hands out the latest set. */
  get linkPath(): string {
    return this.#linkPath;
  }

  /** An administrator makes a new token: nothing that was issued before works any more. */
  makeNewSet(): void {
    this.revoke();
    this.#linkPath = `/token_links/${secret('link')}`;
    this.#createdAt = this.#options.now();
    this.#refreshed = false;
    this.#current = this.#issue();
  }

  /** The administrator is demoted: no token is valid. The link still works, since the interface does not say otherwise. */
  revoke(): void {
    this.#revokeAccessTokens();
    this.#refreshExpiresAt = Number.NEGATIVE_INFINITY;
  }

  openLink(path: string): Answer {
    const age = this.#options.now() - this.#createdAt;
    if (path !== this.#linkPath || this.#refreshed || age >= linkLifetime) {
      return problem(404, 'This link no longer works.');
    }
    // The interface leaves the unit of created_at open. Whole seconds since 1970 are assumed here.
    const createdAt = Math.floor(this.#createdAt / 1000);
    return { status: 200, body: { ...this.#current, created_at: createdAt } };
  }

  /** Returns the 401 for a request without a valid access token. */
  refuse(request: IncomingMessage): Answer | undefined {
    const token = this.#accessTokens.get(bearer(request.headers.authorization));
    // Only `token_expired` is published. `token_invalid` (no token, or one never issued)
    // and `token_revoked` (issued, and withdrawn since) are this sandbox's assumption.
    if (token === undefined) return invalidToken('token_invalid');
    if (this.#options.now() >= token.expiresAt) return invalidToken('token_expired');
    if (token.revoked) return invalidToken('token_revoked');
    return undefined;
  }

  /** Returns a new pair for the current refresh token, which is then spent; undefined for any other token. */
  exchange(refreshToken: string): TokenSet | undefined {
    if (refreshToken !== this.#current.refresh_token) return undefined;
    if (this.#options.now() >= this.#refreshExpiresAt) return undefined;
    if (this.#options.revokeOnRefresh) this.#revokeAccessTokens();
    this.#refreshed = true;
    this.#current = this.#issue();
    return this.#current;
  }

  #revokeAccessTokens(): void {
    for (const token of this.#accessTokens.values()) token.revoked = true;
  }

  #issue(): TokenSet {
    const { expiresIn, refreshExpiresIn, now } = this.#options;
    const access = secret('access');
    this.#accessTokens.set(access, { expiresAt: now() + expiresIn * 1000, revoked: false });
    this.#refreshExpiresAt = now() + refreshExpiresIn * 1000;
    return {
      name: 'Sandbox',
      access_token: access,
      expires_in: expiresIn,
      refresh_token: secret('refresh'),
      refresh_token_expires_in: refreshExpiresIn,
      token_type: 'bearer',
    };
  }
}

const linkLifetime = 30 * 86_400_000;

interface AccessToken {
  expiresAt: number;
  revoked: boolean;
}

/** Recognizable, so that a token in the wrong place can be found. */
function secret(kind: 'access' | 'refresh' | 'link'): string {
  return `sandbox-${kind}-${randomBytes(32).toString('base64url')}`;
}

function bearer(authorization = ''): string {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}

function invalidToken(detail: string): Answer {
  return { status: 401, body: { type: 'invalid_token', detail } };
}
