import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

/** How long each access token lives, s, and how long each answer to a request with one takes, ms. */
const LIFE_S = 1;
const WORK_MS = 20;

/** An OAuth service and its API: refresh tokens work once, and using one again revokes them all (RFC 9700, 4.14.2). */
export class OAuthService {
  readonly #secret: string;
  readonly #spent = new Set<string>();
  readonly #accepted = new Map<string, number>();
  #newest = '';
  /** How often a refresh token was exchanged, and how often one was sent that was spent. */
  exchanges = 0;
  reuses = 0;
  readonly server = createServer((request, response) => void this.#answer(request, response));

  constructor(secret: string) {
    this.#secret = secret;
  }

  get newest(): string {
    return this.#newest;
  }

  /** The answer of the token endpoint: to a sign-in, for example. */
  grant() {
    const accessToken = randomUUID();
    this.#newest = randomUUID();
    this.#accepted.set(accessToken, Date.now() + LIFE_S * 1000);
    return { access_token: accessToken, refresh_token: this.#newest, expires_in: LIFE_S };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/token') return this.#exchange(request, response);
    const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (Date.now() < (this.#accepted.get(token) ?? 0)) {
      return void setTimeout(() => response.end('Hello'), WORK_MS);
    }
    response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
  }

  async #exchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await text(request));
    const client = `Basic ${Buffer.from(`worker:${this.#secret}`).toString('base64')}`;
    const refuse = (status: number, error: string) =>
      void response.writeHead(status).end(JSON.stringify({ error }));
    if (request.headers.authorization !== client) return refuse(401, 'invalid_client');
    const token = form.get('refresh_token') ?? '';
    if (this.#spent.has(token)) {
      this.reuses += 1;
      this.#newest = '';
      this.#accepted.clear();
    }
    if (token === '' || token !== this.#newest) return refuse(400, 'invalid_grant');
    this.#spent.add(token);
    this.exchanges += 1;
    response.end(JSON.stringify(this.grant()));
  }
}
