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

/** Issues the tokens of one administrator, rotates them, and knows which of them are good. */
export class TokenOffice {
  readonly linkPath = `/token_links/${secret()}`;
  readonly #options: TokenOptions;
  readonly #createdAt: number;
  readonly #accessTokens = new Map<string, AccessToken>();
  #current: TokenSet;
  #refreshExpiresAt = 0;
  #refreshed = false;

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#createdAt = options.now();
    this.#current = this.#issue();
  }

  openLink(): Answer {
    const age = this.#options.now() - this.#createdAt;
    if (this.#refreshed || age >= linkLifetime) return problem(404, 'This link no longer works.');
    // The interface leaves the unit of created_at open. Whole seconds since 1970 are assumed here.
    const createdAt = Math.floor(this.#createdAt / 1000);
    return { status: 200, body: { ...this.#current, created_at: createdAt } };
  }

  /** The 401 that a request without a good access token gets; undefined lets it pass. */
  refuse(request: IncomingMessage): Answer | undefined {
    const token = this.#accessTokens.get(bearer(request.headers.authorization));
    // Only `token_expired` is published. `token_invalid` (no token, or one never issued)
    // and `token_revoked` (issued, and withdrawn since) are this sandbox's assumption.
    if (token === undefined) return invalidToken('token_invalid');
    if (this.#options.now() >= token.expiresAt) return invalidToken('token_expired');
    if (token.revoked) return invalidToken('token_revoked');
    return undefined;
  }

  /** A new pair for the current refresh token, which is spent by that; undefined for any other. */
  exchange(refreshToken: string): TokenSet | undefined {
    if (refreshToken !== this.#current.refresh_token) return undefined;
    if (this.#options.now() >= this.#refreshExpiresAt) return undefined;
    if (this.#options.revokeOnRefresh) {
      for (const token of this.#accessTokens.values()) token.revoked = true;
    }
    this.#refreshed = true;
    this.#current = this.#issue();
    return this.#current;
  }

  #issue(): TokenSet {
    const { expiresIn, refreshExpiresIn, now } = this.#options;
    const access = secret();
    this.#accessTokens.set(access, { expiresAt: now() + expiresIn * 1000, revoked: false });
    this.#refreshExpiresAt = now() + refreshExpiresIn * 1000;
    return {
      name: 'Sandbox',
      access_token: access,
      expires_in: expiresIn,
      refresh_token: secret(),
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

function secret(): string {
  return randomBytes(32).toString('base64url');
}

function bearer(authorization = ''): string {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}

function invalidToken(detail: string): Answer {
  return { status: 401, body: { type: 'invalid_token', detail } };
}
