import type { AccessVerdict } from '../../src/tokens/service/auth-check.ts';
import type { ExchangeOutcome, TokenEndpoint } from '../../src/tokens/service/exchange.ts';
import type { Grant } from '../../src/tokens/token-set.ts';
import type { Chance } from './chance.ts';
import type { Claimed, Observer } from './observer.ts';
import type { Process } from './process.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What is unusual about one exchange. */
export const ODDITIES = [
  'no connection',
  'cut before it arrives',
  'cut after it was processed',
  'late answer',
  'no answer',
  'processed after its client has given up',
  'sent twice by a proxy',
  'status 429',
  'status 500',
  'status 403',
  'redirect',
  'page with status 200',
  'pair with status 503',
  'without a refresh token',
  'the same refresh token',
  'without an access token',
  'without lifetimes',
] as const;

export type Oddity = (typeof ODDITIES)[number];

/** As for a refresh token that is spent, or with a 403. */
export type EarlyRefusal = 'as spent' | 'with status 403';

/** One request to the token endpoint, as an observer of everything sees it. */
export interface Exchange {
  readonly refreshToken: string;
  readonly by: Process;
  readonly sentAt: number;
  readonly oddity: Oddity | undefined;
  /** The claim that it was sent for. */
  claim: Claimed | undefined;
  /** What the service issued, if it processed the request. */
  gave: { readonly accessToken: string; readonly refreshToken: string } | undefined;
  /** Whether the request spends its refresh token. */
  spends: boolean;
  /** It was refused because the access token worked. */
  wasEarly: boolean;
  /** When its process had received a 200. */
  receivedAt: number | undefined;
  /** How long its process had been stopped by then, ms. */
  stoppedBefore: number;
  isOver: boolean;
}

export interface ServiceOptions {
  readonly time: VirtualTime;
  readonly chance: Chance;
  /** Life of access tokens, seconds. */
  readonly life: number;
  readonly revokesOnRefresh: boolean;
  readonly refusesEarly: EarlyRefusal | null;
  readonly observer: Observer;
}

/** Seconds. */
const REFRESH_LIFE = 10_368_000;
const PATIENCE_MS = 121_000;
const LATE_MS = 100_000;

/** A token service without sockets. */
export class Service {
  readonly exchanges: Exchange[] = [];
  /** What is unusual about the next exchanges, in this order. */
  readonly oddities: Oddity[] = [];
  /** The administrator is blocked: every access token is refused. */
  isBlocked = false;
  isUnreachable = false;
  readonly #options: ServiceOptions;
  readonly #ends = new Map<string, number>();
  /** Access tokens that were used. */
  readonly #used = new Set<string>();
  #issued = 0;
  #keepsTokens = false;
  #live: { accessToken: string; refreshToken: string };
  /** The access token of the last answer. */
  #lastAccessToken: string;

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#live = this.#issue();
    this.#lastAccessToken = this.#live.accessToken;
  }

  /** The pair whose refresh token is not spent. */
  get live(): { accessToken: string; refreshToken: string } {
    return this.#live;
  }

  /** Whether the access token that was given last works. */
  get worksNow(): boolean {
    return (this.#ends.get(this.#lastAccessToken) ?? 0) > this.#options.time.now;
  }

  get firstPair() {
    return {
      ...this.#live,
      expiresIn: this.#options.life,
      refreshTokenExpiresIn: REFRESH_LIFE,
      name: null,
    };
  }

  /** Ends all access tokens that were used; a new one is not refreshed before it was. */
  expire(): void {
    for (const token of this.#used) this.#ends.set(token, this.#options.time.now);
  }

  judge(accessToken: string): AccessVerdict {
    if (this.isUnreachable) return { kind: 'unknown', why: 'no connection' };
    if (this.isBlocked) return { kind: 'refused', detail: 'user_blocked' };
    const end = this.#ends.get(accessToken);
    if (end === undefined) return { kind: 'refused', detail: 'token_revoked' };
    this.#used.add(accessToken);
    if (end > this.#options.time.now) return { kind: 'works' };
    return { kind: 'refused', detail: 'token_expired' };
  }

  async check(by: Process, accessToken: string): Promise<AccessVerdict> {
    const { time, chance } = this.#options;
    return by.outside(async () => {
      await time.sleep(chance.between(1, 40));
      return this.judge(accessToken);
    });
  }

  async connect(by: Process): Promise<TokenEndpoint> {
    const { time, chance, observer } = this.#options;
    return by.outside(async () => {
      await time.sleep(chance.between(1, 40));
      if (this.isUnreachable || this.oddities[0] === 'no connection') {
        if (!this.isUnreachable) {
          this.oddities.shift();
          observer.met('an exchange with: no connection');
        }
        throw new Error('connect ECONNREFUSED');
      }
      return {
        exchange: (refreshToken, mayStillSend) => this.#exchange(by, refreshToken, mayStillSend),
        close: async () => {},
      };
    }, 'connect');
  }

  async #exchange(
    by: Process,
    refreshToken: string,
    mayStillSend: () => boolean,
  ): Promise<ExchangeOutcome> {
    const { time, observer } = this.#options;
    await by.reach('send');
    if (!mayStillSend()) return { kind: 'unsent' };
    const exchange: Exchange = {
      refreshToken,
      by,
      sentAt: time.now,
      oddity: this.oddities[0] === 'no connection' ? undefined : this.oddities.shift(),
      claim: undefined,
      gave: undefined,
      spends: false,
      wasEarly: false,
      receivedAt: undefined,
      stoppedBefore: 0,
      isOver: false,
    };
    this.exchanges.push(exchange);
    observer.note(
      `${by.name} sends ${refreshToken}${exchange.oddity ? ` (${exchange.oddity})` : ''}`,
    );
    observer.onSend(exchange);
    const outcome = await by.outside(() => this.#answer(exchange), 'answer');
    // It was killed between the arrival of the answer and the first step that would have read it.
    if (by.isDead) return new Promise(() => {});
    exchange.isOver = true;
    exchange.stoppedBefore = by.stoppedMs;
    if (outcome.kind === 'granted') exchange.receivedAt = time.now;
    observer.onAnswer(exchange, outcome);
    return outcome;
  }

  /** A process that was stopped for longer than it waits finds the answer on waking: the answer counts. */
  async #answer(exchange: Exchange): Promise<ExchangeOutcome> {
    const { time } = this.#options;
    const served = this.#serve(exchange);
    const patience = Promise.withResolvers<ExchangeOutcome>();
    const giveUp = () => {
      if (exchange.by.isStopped) time.after(1_000, giveUp);
      else patience.resolve({ kind: 'uncertain', why: 'no answer' });
    };
    const timer = time.after(PATIENCE_MS, giveUp);
    const outcome = await Promise.race([served, patience.promise]);
    if (outcome === 'nothing') return patience.promise;
    timer.cancelled = true;
    return outcome;
  }

  async #serve(exchange: Exchange): Promise<ExchangeOutcome | 'nothing'> {
    const { time, chance, observer } = this.#options;
    const cut = { kind: 'uncertain', why: 'cut' } as const;
    const { oddity } = exchange;
    await time.sleep(chance.between(1, 60));
    switch (oddity) {
      case 'cut before it arrives':
        return cut;
      case 'no answer':
        return 'nothing';
      case 'status 429':
        return { kind: 'rate-limited', retryAfter: 5 };
      case 'status 500':
        return unclear(500, 'Oops');
      case 'status 403':
        return { kind: 'refused', status: 403 };
      case 'redirect':
        return unclear(302, '');
      case 'page with status 200':
        return unclear(200, '<html>');
      case 'processed after its client has given up':
        await time.sleep(PATIENCE_MS + 10_000);
    }
    const outcome = this.#process(exchange);
    observer.note(`the service ${exchange.gave ? 'takes' : 'rejects'} ${exchange.refreshToken}`);
    await time.sleep(chance.between(1, 60));
    switch (oddity) {
      case 'cut after it was processed':
        return cut;
      case 'processed after its client has given up':
        return 'nothing';
      case 'late answer':
        await time.sleep(LATE_MS);
        return outcome;
      case 'sent twice by a proxy':
        return this.#process(exchange);
      case 'pair with status 503': {
        if (!exchange.gave) return unclear(503, 'Oops');
        const { accessToken: access_token, refreshToken: refresh_token } = exchange.gave;
        return unclear(503, JSON.stringify({ upstream: { access_token, refresh_token } }));
      }
      default:
        return outcome;
    }
  }

  #process(exchange: Exchange): ExchangeOutcome {
    const before = this.#live;
    if (exchange.refreshToken !== before.refreshToken) return { kind: 'invalid-grant' };
    const { refusesEarly } = this.#options;
    // One that does not renew refresh tokens would go by an access token that nobody received.
    if (refusesEarly && this.worksNow && !this.#keepsTokens) {
      exchange.wasEarly = true;
      return refusesEarly === 'as spent'
        ? { kind: 'invalid-grant' }
        : { kind: 'refused', status: 403 };
    }
    const { oddity } = exchange;
    // A service that issues no new access token does not end the old one.
    const givesAccess = oddity !== 'without an access token';
    if (this.#options.revokesOnRefresh && givesAccess) this.#ends.clear();
    this.#live = this.#issue();
    // A service that does not renew refresh tokens continues without renewing them.
    this.#keepsTokens ||=
      oddity === 'without a refresh token' || oddity === 'the same refresh token';
    const keepsToken = this.#keepsTokens;
    if (keepsToken) this.#live = { ...this.#live, refreshToken: before.refreshToken };
    exchange.gave = this.#live;
    exchange.spends = !keepsToken;
    const { accessToken, refreshToken } = this.#live;
    if (givesAccess) this.#lastAccessToken = accessToken;
    const lives = oddity !== 'without lifetimes';
    const grant: Grant = {
      accessToken: givesAccess ? accessToken : undefined,
      refreshToken: oddity === 'without a refresh token' ? undefined : refreshToken,
      expiresIn: lives ? this.#options.life : undefined,
      refreshTokenExpiresIn: lives ? REFRESH_LIFE : undefined,
      name: null,
    };
    return { kind: 'granted', grant };
  }

  #issue() {
    this.#issued += 1;
    const pair = { accessToken: `access-${this.#issued}`, refreshToken: `refresh-${this.#issued}` };
    const { time, life } = this.#options;
    this.#ends.set(pair.accessToken, time.now + life * 1000);
    return pair;
  }
}

function unclear(status: number, body: string): ExchangeOutcome {
  const answer = { status, contentEncoding: undefined, body: Buffer.from(body) };
  return { kind: 'uncertain', why: `status ${status}`, answer };
}
