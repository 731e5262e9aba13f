import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { problem, type Answer } from './route-requests.ts';

interface TokenOptions {
  /** Seconds. */
  expiresIn: number;
  /** Seconds. */
  refreshExpiresIn: number;
  revokeOnRefresh: boolean;
  /** Whether a refresh before the access token has expired is refused. */
  refusesEarly: boolean;
  /** Whether the link is a page for people. */
  linkPage: boolean;
  now: () => number;
  /** What an office before this one saved; undefined: a new administrator makes a first token. */
  saved: TokenState | undefined;
  /** Called after each change of the state, before its result is visible. */
  onChange: () => void;
}

/** The state of an office, as JSON. Times in milliseconds since 1970. */
export interface TokenState {
  linkPath: string;
  createdAt: number;
  current: TokenSet;
  refreshExpiresAt: number;
  /** Whether a token of the latest link was exchanged. */
  refreshed: boolean;
  /** By the token itself. */
  accessTokens: Record<string, AccessToken>;
}

interface TokenSet {
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
  #state: TokenState;

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#state = options.saved ?? this.#newState({});
  }

  get state(): Readonly<TokenState> {
    return this.#state;
  }

  /** The path that hands out the latest set. */
  get linkPath(): string {
    return this.#state.linkPath;
  }

  /** An administrator makes a new token: nothing that was issued before works any more. */
  makeNewSet(): void {
    this.#revokeAccessTokens();
    this.#state = this.#newState(this.#state.accessTokens);
    this.#options.onChange();
  }

  /** The administrator is demoted: no token is valid. The link still works, since the interface does not say otherwise. */
  revoke(): void {
    this.#revokeAccessTokens();
    this.#state.refreshExpiresAt = 0;
    this.#options.onChange();
  }

  openLink(path: string): Answer {
    const { linkPath, createdAt: created, refreshed, current } = this.#state;
    const age = this.#options.now() - created;
    if (path !== linkPath || refreshed || age >= linkLifetime) {
      return problem(404, 'This link no longer works.');
    }
    // The interface leaves the unit of created_at open. Whole seconds since 1970 are assumed here.
    const createdAt = Math.floor(created / 1000);
    const set = { ...current, created_at: createdAt };
    return this.#options.linkPage ? pageWith(set) : { status: 200, body: set };
  }

  /** Returns the 401 for a request without a valid access token. */
  refuse(request: IncomingMessage): Answer | undefined {
    const { accessTokens } = this.#state;
    const sent = bearer(request.headers.authorization);
    const token = Object.hasOwn(accessTokens, sent) ? accessTokens[sent] : undefined;
    // Only `token_expired` is published. `token_invalid` (no token, or one never issued)
    // and `token_revoked` (issued, and withdrawn since) are this sandbox's assumption.
    if (token === undefined) return invalidToken('token_invalid');
    if (this.#options.now() >= token.expiresAt) return invalidToken('token_expired');
    if (token.revoked) return invalidToken('token_revoked');
    return undefined;
  }

  /**
   * Returns a new pair for the current refresh token, which is then spent. Otherwise says why not: the token stays
   * valid if it is `early`, and is another one or expired if it is `invalid`.
   */
  exchange(refreshToken: string): TokenSet | 'early' | 'invalid' {
    const { current, refreshExpiresAt, accessTokens } = this.#state;
    if (refreshToken !== current.refresh_token) return 'invalid';
    if (this.#options.now() >= refreshExpiresAt) return 'invalid';
    const access = accessTokens[current.access_token]!;
    const isValid = !access.revoked && this.#options.now() < access.expiresAt;
    if (isValid && this.#options.refusesEarly) return 'early';
    if (this.#options.revokeOnRefresh) this.#revokeAccessTokens();
    this.#state = { ...this.#state, ...this.#issue(accessTokens), refreshed: true };
    this.#options.onChange();
    return this.#state.current;
  }

  #revokeAccessTokens(): void {
    for (const token of Object.values(this.#state.accessTokens)) token.revoked = true;
  }

  #newState(accessTokens: TokenState['accessTokens']): TokenState {
    return {
      linkPath: `/token_links/${secret('link')}`,
      createdAt: this.#options.now(),
      refreshed: false,
      ...this.#issue(accessTokens),
    };
  }

  #issue(
    accessTokens: TokenState['accessTokens'],
  ): Pick<TokenState, 'current' | 'refreshExpiresAt' | 'accessTokens'> {
    const { expiresIn, refreshExpiresIn, now } = this.#options;
    const access = secret('access');
    accessTokens[access] = { expiresAt: now() + expiresIn * 1000, revoked: false };
    return {
      accessTokens,
      refreshExpiresAt: now() + refreshExpiresIn * 1000,
      current: {
        name: 'Sandbox',
        access_token: access,
        expires_in: expiresIn,
        refresh_token: secret('refresh'),
        refresh_token_expires_in: refreshExpiresIn,
        token_type: 'bearer',
      },
    };
  }
}

function pageWith(set: object): Answer {
  const json = JSON.stringify(set, undefined, 2);
  return {
    status: 200,
    text: `<!doctype html>
<html lang="en">
  <head><title>Your token</title></head>
  <body>
    <h1>Your token</h1>
    <p>Save this text as a file. It is shown until the token is first refreshed, and for 30 days at most.</p>
    <pre>${json.replaceAll('&', '&amp;').replaceAll('"', '&quot;')}</pre>
  </body>
</html>
`,
    headers: { 'content-type': 'text/html; charset=utf-8' },
  };
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
