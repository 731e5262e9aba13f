import type { Pair } from '../../../src/tokens/pair.ts';
import type { Exchange as Outcome, TokenService, Verdict } from '../../../src/tokens/service.ts';
import type { Chance, VirtualTime } from './virtual-time.ts';
import type { Claimed, Observer } from './observer.ts';
import type { Process } from './process.ts';

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
  'the same refresh token',
] as const;

export type Oddity = (typeof ODDITIES)[number];

/** One request to the token endpoint, as an observer of everything sees it. */
export interface Exchange {
  readonly refreshToken: string;
  readonly by: Process;
  readonly sentAt: number;
  readonly oddity: Oddity | undefined;
  readonly claim: Claimed | undefined;
  /** What the service issued, if it processed the request. */
  gave: Issued | undefined;
  /** Whether the request spent its refresh token. */
  spends: boolean;
  /** When its process had received a 200. */
  receivedAt: number | undefined;
  isOver: boolean;
}

interface Issued {
  readonly accessToken: string;
  readonly refreshToken: string;
}

export interface ServiceOptions {
  readonly time: VirtualTime;
  readonly chance: Chance;
  /** Life of access tokens, seconds. */
  readonly life: number;
  readonly revokesOnRefresh: boolean;
  readonly refusesEarly: boolean;
  readonly isMute: boolean;
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
  isUnreachable = false;
  readonly #options: ServiceOptions;
  /** Until when each access token works. */
  readonly #works = new Map<string, number>();
  #issued = 0;
  #keepsTokens = false;
  #live: Issued;

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#live = this.#issue();
  }

  /** The pair whose refresh token is not spent. */
  get live(): Issued {
    return this.#live;
  }

  get firstPair(): Pair {
    return this.#pairOf(this.#live);
  }

  #pairOf(issued: Issued): Pair {
    const lives = { expiresIn: this.#options.life, refreshTokenExpiresIn: REFRESH_LIFE };
    return { ...issued, ...lives };
  }

  /** Ends all access tokens. */
  expire(): void {
    const { now } = this.#options.time;
    for (const [token, to] of this.#works) this.#works.set(token, Math.min(to, now));
  }

  judge(accessToken: string): Verdict {
    const { now } = this.#options.time;
    if (this.isUnreachable) return { kind: 'unclear', why: 'no connection' };
    const to = this.#works.get(accessToken);
    if (to === undefined) return { kind: 'refused', detail: 'token_revoked' };
    return now < to ? { kind: 'works' } : { kind: 'refused', detail: 'token_expired' };
  }

  of(by: Process): TokenService {
    const exchange: TokenService['exchange'] = (pair, maySend) => this.#exchange(by, pair, maySend);
    if (this.#options.isMute) return { exchange };
    return {
      exchange,
      check: (accessToken) =>
        by.outside(async () => {
          await this.#options.time.sleep(20);
          return this.judge(accessToken);
        }),
    };
  }

  async #exchange(by: Process, pair: Pair, maySend: () => boolean): Promise<Outcome> {
    const { time, chance, observer } = this.#options;
    await by.outside(() => time.sleep(chance.between(1, 40)), 'connect');
    if (this.isUnreachable) return { kind: 'unsent', why: 'ECONNREFUSED' };
    if (this.oddities[0] === 'no connection') {
      this.oddities.shift();
      return { kind: 'unsent', why: 'ECONNREFUSED' };
    }
    await by.reach('send');
    if (!maySend()) return { kind: 'unsent', why: 'too late' };
    const { refreshToken } = pair;
    const exchange: Exchange = {
      refreshToken,
      by,
      sentAt: time.now,
      oddity: this.oddities.shift(),
      claim: observer.claimOf(by),
      gave: undefined,
      spends: false,
      receivedAt: undefined,
      isOver: false,
    };
    observer.note(`${by.name} sends ${refreshToken} (${exchange.oddity ?? 'as usual'})`);
    observer.onSend(exchange);
    this.exchanges.push(exchange);
    const outcome = await by.outside(() => this.#answer(exchange), 'answer');
    exchange.isOver = true;
    if (outcome.kind === 'granted') exchange.receivedAt = time.now;
    observer.note(`${by.name} hears ${outcome.kind}${'why' in outcome ? ` (${outcome.why})` : ''}`);
    return outcome;
  }

  /** A process that was stopped for longer than it waits finds the answer on waking: the answer counts. */
  async #answer(exchange: Exchange): Promise<Outcome> {
    const { time } = this.#options;
    const patience = Promise.withResolvers<Outcome>();
    const giveUp = () => {
      if (exchange.by.isStopped) time.after(1_000, giveUp);
      else patience.resolve({ kind: 'unclear', why: 'no answer', answer: null });
    };
    const timer = time.after(PATIENCE_MS, giveUp);
    const outcome = await Promise.race([this.#serve(exchange), patience.promise]);
    if (outcome === 'nothing') return patience.promise;
    timer.cancelled = true;
    return outcome;
  }

  async #serve(exchange: Exchange): Promise<Outcome | 'nothing'> {
    const { time, chance, observer } = this.#options;
    const { oddity } = exchange;
    await time.sleep(chance.between(1, 60));
    const unprocessed = UNPROCESSED[oddity ?? ''];
    if (unprocessed) return unprocessed;
    if (oddity === 'processed after its client has given up')
      await time.sleep(PATIENCE_MS + 10_000);
    const outcome = this.#process(exchange);
    observer.note(`the service ${exchange.gave ? 'takes' : 'rejects'} ${exchange.refreshToken}`);
    await time.sleep(chance.between(1, 60));
    switch (oddity) {
      case 'cut after it was processed':
        return { kind: 'unclear', why: 'cut', answer: null };
      case 'processed after its client has given up':
        return 'nothing';
      case 'late answer':
        await time.sleep(LATE_MS);
        return outcome;
      case 'sent twice by a proxy':
        return this.#process(exchange);
      default:
        return outcome;
    }
  }

  #process(exchange: Exchange): Outcome {
    const { refusesEarly, revokesOnRefresh, time } = this.#options;
    const before = this.#live;
    if (exchange.refreshToken !== before.refreshToken) return { kind: 'invalid-grant' };
    // One that does not renew refresh tokens would go by an access token that nobody received.
    const works = (this.#works.get(before.accessToken) ?? 0) > time.now;
    if (refusesEarly && works && !this.#keepsTokens) return { kind: 'invalid-grant' };
    if (revokesOnRefresh) this.#works.clear();
    this.#live = this.#issue();
    // A service that does not renew refresh tokens continues without renewing them.
    this.#keepsTokens ||= exchange.oddity === 'the same refresh token';
    if (this.#keepsTokens) this.#live = { ...this.#live, refreshToken: before.refreshToken };
    exchange.gave = this.#live;
    exchange.spends = !this.#keepsTokens;
    return { kind: 'granted', pair: this.#pairOf(this.#live) };
  }

  #issue(): Issued {
    this.#issued += 1;
    const pair = { accessToken: `access-${this.#issued}`, refreshToken: `refresh-${this.#issued}` };
    this.#works.set(pair.accessToken, this.#options.time.now + this.#options.life * 1000);
    return pair;
  }
}

const UNPROCESSED: Readonly<Record<string, Outcome | 'nothing'>> = {
  'cut before it arrives': { kind: 'unclear', why: 'cut', answer: null },
  'no answer': 'nothing',
  'status 429': { kind: 'unsent', why: 'status 429', retryAfter: 5 },
  'status 500': { kind: 'unclear', why: 'status 500', answer: 'Oops' },
};
