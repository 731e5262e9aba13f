import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { problem, type Answer, type Route } from './http.ts';

interface TokenOptions {
  /** Lifetime of access tokens, in seconds. */
  readonly expiresIn: number;
  /** The clock, in milliseconds. */
  readonly now?: () => number;
}

interface TokenSet {
  readonly name: string;
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
  readonly #options: Required<TokenOptions>;
  readonly #accessTokens = new Map<string, { expiresAt: number; revoked: boolean }>();
  /** The path that hands out the latest set. */
  linkPath = '';
  #createdAt = 0;
  #current!: TokenSet;
  #refreshExpiresAt = 0;
  /** Whether a token of the latest link was exchanged. */
  #refreshed = false;

  constructor({ expiresIn, now = Date.now }: TokenOptions) {
    this.#options = { expiresIn, now };
    this.makeNewSet();
  }

  /** An administrator makes a new token: nothing that was issued before works any more. Returns the new link's path. */
  makeNewSet(): string {
    this.revokeAccessTokens();
    this.linkPath = `/token_links/${secret('link')}`;
    this.#createdAt = this.#options.now();
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
    for (const token of this.#accessTokens.values()) token.revoked = true;
  }

  openLink(path: string): Answer {
    if (path !== this.linkPath || this.#refreshed) {
      return problem(404, 'This link no longer works.');
    }
    // The interface leaves the unit of created_at open. Whole seconds since 1970 are assumed here.
    const created_at = Math.floor(this.#createdAt / 1000);
    return { status: 200, body: { ...this.#current, created_at } };
  }

  /** Returns the 401 for a request without a valid access token. */
  refuse({ headers }: IncomingMessage): Answer | undefined {
    const detail = this.#refusalOf(bearer(headers.authorization));
    if (detail === undefined) return undefined;
    return { status: 401, body: { type: 'invalid_token', detail } };
  }

  /**
   * Only `token_expired` is published. `token_invalid` (no token, or one never issued) and `token_revoked` (issued, and
   * withdrawn since) are assumptions of this sandbox.
   */
  #refusalOf(accessToken: string): string | undefined {
    const token = this.#accessTokens.get(accessToken);
    if (token === undefined) return 'token_invalid';
    if (this.#options.now() >= token.expiresAt) return 'token_expired';
    return token.revoked ? 'token_revoked' : undefined;
  }

  /** Whether this is the refresh token that would be exchanged now. */
  accepts(refreshToken: string): boolean {
    return (
      refreshToken === this.#current.refresh_token && this.#options.now() < this.#refreshExpiresAt
    );
  }

  /** Returns a new pair for the current refresh token, which is then spent; undefined for any other. */
  exchange(refreshToken: string): TokenSet | undefined {
    if (!this.accepts(refreshToken)) return undefined;
    this.#refreshed = true;
    this.#current = this.#issue();
    return this.#current;
  }

  #issue(): TokenSet {
    const { expiresIn, now } = this.#options;
    const access = secret('access');
    this.#accessTokens.set(access, { expiresAt: now() + expiresIn * 1000, revoked: false });
    this.#refreshExpiresAt = now() + REFRESH_LIFETIME * 1000;
    return {
      name: 'Sandbox',
      access_token: access,
      expires_in: expiresIn,
      refresh_token: secret('refresh'),
      refresh_token_expires_in: REFRESH_LIFETIME,
      token_type: 'bearer',
    };
  }
}

/** POST /oauth/token */
export function tokenRoute(tokens: TokenOffice): Route {
  return async (request) => answerGrant(await formOf(request), tokens);
}

/** Only a form has fields: any other body is treated as one without a grant_type. */
async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  const body = await text(request);
  const type = request.headers['content-type'] ?? '';
  const isForm = type.startsWith('application/x-www-form-urlencoded');
  return new URLSearchParams(isForm ? body : '');
}

function answerGrant(form: URLSearchParams, tokens: TokenOffice): Answer {
  if (form.get('grant_type') !== 'refresh_token') {
    return refusal(
      'unsupported_grant_type',
      'The authorization grant type is not supported by the authorization server.',
    );
  }
  const set = tokens.exchange(form.get('refresh_token') ?? '');
  if (set) return { status: 200, body: set };
  return refusal('invalid_grant', 'Refresh token is invalid, expired or revoked.');
}

function refusal(error: string, error_description: string): Answer {
  return { status: 400, body: { error, error_description } };
}

/** Recognizable, so that a token in the wrong place can be found. */
function secret(kind: 'access' | 'refresh' | 'link'): string {
  return `sandbox-${kind}-${randomBytes(32).toString('base64url')}`;
}

function bearer(authorization = ''): string {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}
