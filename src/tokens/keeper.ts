import { codeOf, OperatorMistake } from '../errors.ts';
import { endIsNear, healthOf, lineOn, type TokenHealth } from './health.ts';
import { notRefreshedError, TokenHolder } from './holder.ts';
import type { Pair } from './pair.ts';
import { dueAt, isLost, isUncertain, type Imported, type State } from './state.ts';
import { StoreUnavailable } from './store.ts';

/** The access token that a request is sent with. */
export interface AccessToken {
  readonly value: string;
  readonly generation: number;
}

/** How often the store is read, ms. */
const TICK_MS = 30_000;
const SAVE_AGAIN_MS = 1_000;
/** How long a caller waits for a refresh, about as long as clients wait for an answer. An exchange may take longer. */
const CALLER_MS = 30_000;
/** Nodes of the service were seen to learn of a new access token up to 1.5 s late. */
const YOUNG_MS = 5_000;
const MAX_REPLAYS = 3;
const FIRST_REPLAY_MS = 400;
/** A token that was never accepted is renewed after this time. */
const UNACCEPTED_MS = 60_000;
/** After a refresh that failed. */
const PAUSE_MS = 10_000;

/** Keeps one token set alive: refreshes it ahead of its expiry, and when the service reports that it has expired. */
export class TokenKeeper extends TokenHolder {
  /** The newest generation whose access token the service has accepted. */
  #accepted = 0;
  /** The one that it refused, and no other token helped. */
  #givenUp = 0;
  /** Ends the sleep of the loop. */
  #nap = new AbortController();
  #firstImport = Promise.resolve();
  #keeping = Promise.resolve();
  #pause: { readonly until: number; readonly error: Error } | undefined;
  /** What was logged, and is still the case. */
  #told: ReadonlySet<string> = new Set();

  /**
   * Reads the store, and begins. A store that is unavailable now, such as a database server that is down, is read as soon
   * as it is back.
   *
   * @throws if the store cannot be read, or belongs to another service
   */
  async open(): Promise<void> {
    await this.look().catch((error: Error) => {
      if (!(error.cause instanceof StoreUnavailable)) throw error;
      this.#report(error);
    });
    // Requests wait for the first try only: a link that is unavailable would hold them for ever.
    this.#firstImport = this.#importLink().catch((error: Error) => this.#report(error));
    this.#keeping = this.#keep();
  }

  /** The newest access token; a promise of it until the first import is over. @throws a coded error without one */
  token(): AccessToken | Promise<AccessToken> {
    if (this.state) return tokenOf(this.state);
    const read = this.#firstImport.then(() => this.look());
    return this.#patiently(read.then(() => tokenOf(this.#held())));
  }

  #held(): State {
    if (!this.state) throw this.fatal('missing');
    return this.state;
  }

  /**
   * The token to send a request again with after a 401, or undefined if no other token would help.
   *
   * @param detail of the 401
   * @param replays how often this request was already sent again
   * @throws the coded error of a refresh that failed
   */
  async afterRefusal(
    refused: AccessToken,
    detail: string,
    replays: number,
  ): Promise<AccessToken | undefined> {
    if (replays >= MAX_REPLAYS) return undefined;
    // Another process may have saved a newer pair. If the store fails, what is held decides.
    await this.look().catch(() => {});
    const state = this.#held();
    const isOlder = refused.generation !== state.generation;
    // The newest one was refused a moment ago if this request was sent with an older one after it.
    if (this.#isYounger(state, YOUNG_MS) && !(isOlder && replays === 0)) {
      return this.#whileYoung(state, replays);
    }
    if (isOlder) return tokenOf(state);
    // The error of a set that is lost or moved, whatever the detail is.
    this.usable();
    // After an exchange without an answer, any refusal may mean that the service has processed it.
    const isExpiry = this.parts.meansExpired?.(detail) ?? true;
    const isOver = isExpiry || isUncertain(state, this.now);
    // One that was never accepted is renewed only after a while: the next may be refused as well, and so on for ever.
    const isTooYoung = this.#accepted < state.generation && this.#isYounger(state, UNACCEPTED_MS);
    if (!isOver || isTooYoung) {
      // Some services end the old access token with an exchange that is under way.
      const running = this.underWay();
      return running && this.#patiently(running.then(tokenOf));
    }
    return this.#patiently(this.#renew(state).then(tokenOf));
  }

  /** Whether the pair was received less than so long ago, or less than half the life of its access token. */
  #isYounger({ savedAt, imported, pair }: State, ms: number): boolean {
    const age = this.now - savedAt;
    // A clock that was set back makes an age negative.
    return !imported && age >= 0 && age < Math.min(ms, pair.expiresIn * 500);
  }

  /** The service refuses a token that is seconds old: before that is believed, its nodes get a moment to learn of it. */
  async #whileYoung({ previous }: State, replays: number): Promise<AccessToken | undefined> {
    if (replays === 0 && previous && this.now < previous.expiresAt) {
      return { value: previous.accessToken, generation: previous.generation };
    }
    await this.parts.clock.sleep(FIRST_REPLAY_MS * 2 ** replays);
    const { state } = this;
    return state ? tokenOf(state) : undefined;
  }

  /** Gets a newer pair than this one, which the service refuses as expired: that of another process, or by a refresh. */
  async #renew(state: State): Promise<State> {
    const newest = await this.expire(state);
    // Another process had claimed the exchange, and has saved its pair meanwhile.
    if (newest.generation !== state.generation) return newest;
    // A refresh token that was refused has its times; any other may be sent at once.
    const { now } = this;
    const dueTime = newest.refusals > 0 ? dueAt(newest, now) : newest.notBefore;
    const wait = dueTime - now;
    if (wait > 0) {
      throw notRefreshedError('the refresh token is sent again later', Math.ceil(wait / 1000));
    }
    return this.#refresh();
  }

  /** All callers share one refresh, and the pause after one that failed. */
  async #refresh(): Promise<State> {
    const { clock } = this.parts;
    if (this.#pause && clock.elapsed() < this.#pause.until) throw this.#pause.error;
    try {
      return await this.exchange();
    } catch (error) {
      this.#pause = { until: clock.elapsed() + PAUSE_MS, error: error as Error };
      throw error;
    }
  }

  /** Limits how long a caller waits; the refresh goes on without it. */
  async #patiently<T>(work: Promise<T>): Promise<T> {
    const settled = new AbortController();
    const late = this.parts.clock.sleep(CALLER_MS, settled.signal).then(() => {
      throw notRefreshedError(`the refresh takes longer than ${CALLER_MS / 1000} s`, 60);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      settled.abort();
      // Once aborted, the sleep rejects as well.
      late.catch(() => {});
    }
  }

  /** Reports that the service accepted a token. */
  accepted({ generation }: AccessToken): void {
    this.#accepted = Math.max(this.#accepted, generation);
    if (generation >= this.#givenUp) this.#givenUp = 0;
  }

  /** Reports that the service refused a token, and that no other one helps. */
  refused({ generation }: AccessToken): void {
    if (generation === this.state?.generation) this.#givenUp = generation;
  }

  /**
   * Stores a pair, and exchanges it at once: its age is unknown. If that takes longer or gives nothing now, it goes on.
   *
   * @param replace whether it may replace a set that is in use
   * @throws a coded error if the store fails (the pair may have been imported all the same), and if the service refuses the
   *   refresh token, or the exchange itself: then the pair is in the store, and is exchanged once that is corrected
   */
  override async import(pair: Pair, replace: boolean): Promise<Imported> {
    const outcome = await super.import(pair, replace);
    this.#pause = undefined;
    this.#nap.abort();
    if (outcome !== 'imported') return outcome;
    const { set } = this.state!;
    const failed = await this.#patiently(this.#refresh()).catch((error: unknown) => error);
    const isWithdrawn = this.state!.set !== set;
    if (isWithdrawn || isLost(this.state!, this.now)) throw this.fatal('lost');
    if (codeOf(failed) === 'UPSTREAM_UNAUTHORIZED') throw failed;
    return outcome;
  }

  /** For metrics. Reads neither the store nor the service. */
  health(): TokenHealth {
    const isUnauthorized = this.#givenUp === this.state?.generation;
    return healthOf(this.state, { ...this.facts, isUnauthorized });
  }

  async #keep(): Promise<void> {
    await this.#firstImport;
    while (!this.isClosing) {
      const failure = await this.#step().catch((error: Error) => error);
      // A stop during the step has ended the nap before the next one.
      if (this.isClosing) return;
      this.#report(failure);
      this.#nap = new AbortController();
      // An idle program may end.
      await this.parts.clock.sleep(this.#untilNext(), this.#nap.signal, false).catch(() => {});
    }
  }

  async #step(): Promise<undefined> {
    await this.look();
    await this.#importLink();
    if (this.#untilDue() <= 0) await this.#refresh();
  }

  get #needsLink(): boolean {
    const { state, now } = this;
    return !state || (state.movedTo === null && isLost(state, now));
  }

  /** Imports the token link into a store without usable tokens. One that gives none is read again at the next look. */
  async #importLink(): Promise<void> {
    const { link, log } = this.parts;
    if (!link || !this.#needsLink) return;
    try {
      const outcome = await super.import(await link.read(), false);
      if (outcome === 'known') throw new OperatorMistake(KNOWN_LINK);
      if (outcome === 'imported') log.info('The token link was imported.');
    } catch (error) {
      // Another process may have imported the set since the store was read: its first refresh ends the link.
      await this.look().catch(() => {});
      if (this.#needsLink) throw error;
    }
  }

  /** ms until the refresh token is due to be sent; Infinity if it will not be. */
  #untilDue(): number {
    return this.state ? dueAt(this.state, this.now) - this.now : Infinity;
  }

  /** Short sleeps: a timer that was set before the machine was suspended fires late. */
  #untilNext(): number {
    const pause = this.#pause ? this.#pause.until - this.parts.clock.elapsed() : 0;
    const unsaved = this.facts.isUnsaved ? SAVE_AGAIN_MS : TICK_MS;
    return Math.max(SAVE_AGAIN_MS, Math.min(unsaved, Math.max(this.#untilDue(), pause)));
  }

  /** Logs a failure and each trouble once, when it begins. */
  #report(failure?: Error): void {
    const { store, log, steps } = this.parts;
    const { state, now } = this;
    const told = new Set<string>();
    const tell = (what: string, say: () => void) => {
      told.add(what);
      if (!this.#told.has(what)) say();
    };
    // The line of that trouble says it.
    if (failure && codeOf(failure) !== 'TOKENS_LOST') {
      tell(failure.message, () => log.error({ err: failure, store: store.description }, FAILED));
    }
    for (const trouble of this.health().troubles) {
      const days = trouble === 'ending' ? endIsNear(state!, now) : undefined;
      const level = trouble in LEVELS ? LEVELS[trouble as keyof typeof LEVELS] : 'error';
      tell(`${trouble} ${days}`, () =>
        log[level]({ trouble, days }, lineOn(trouble, state, steps)),
      );
    }
    this.#told = told;
  }

  /** Begins no refresh any more, and waits until the newest pair is safe. */
  override async close(): Promise<void> {
    const safe = super.close();
    this.#nap.abort();
    await safe;
    await this.#keeping;
  }
}

function tokenOf({ pair, generation }: State): AccessToken {
  return { value: pair.accessToken, generation };
}

const KNOWN_LINK =
  'The token link gives tokens that this store has already seen: they are in use or spent. Remove it, or set a new link.';

/** Default: error. */
const LEVELS = { missing: 'warn', ending: 'warn', lost: 'fatal', unsaved: 'fatal' } as const;

const FAILED =
  'The tokens could not be refreshed or read. Requests are sent with the tokens at hand, if any, and this is tried again.';
