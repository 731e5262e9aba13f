import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { OperatorError } from '../errors.ts';
import type { Emergency } from './emergency.ts';
import { lineOn, underWay, type Facts, type Steps } from './health.ts';
import type { Pair } from './pair.ts';
import type { Exchange, TokenService, Unsent } from './service.ts';
import {
  endAttempt,
  importPair,
  isLive,
  isLost,
  isSpentIfRefused,
  expired,
  save,
  successor,
  takeClaim,
  type Ending,
  type Imported,
  type Rule,
  type State,
} from './state.ts';
import { checkService, storeError, StoreUnavailable, type TokenStore } from './store.ts';

/*
 * How a single-use refresh token survives a crash
 *
 * The service accepts a refresh token exactly once, and answers with the next pair. A pair that is received and then
 * forgotten is gone: only an administrator can make another. So at each moment one of three places knows where the newest
 * pair is: the store, an emergency file, or a claim in the store that says "a process may have sent this token".
 *
 *          claim        send once        save         use
 *   ---------|--------------|--------------|------------|----->
 *    what a crash here leaves behind:
 *            |  the claim: the token may   |  the new pair, which
 *            |  be spent (uncertain)       |  the next start reads
 *
 * Claim. One durable transaction records "attempt A may be sending the refresh token of generation n". It is refused while
 * another claim is live, whatever is known of its process: the name of a process proves nothing, because two containers
 * can have the same one. If the claim cannot be written, nothing is sent.
 *
 * Send once. No retry, no redirect, and not later than 25 seconds after the claim: a process that was stopped with its
 * claim must not wake up and send. The exchange belongs to the process: a caller who leaves does not end it.
 *
 * Save before use. Saving never depends on the claim: one refresh token gives one pair, so it cannot be a wrong one, and
 * the generation only grows. It lies in an emergency file until the store has it; if the store fails, it is used from
 * memory.
 *
 * Put back. Whoever reads a store that lacks the pair it holds puts it back. This one rule (`look`) is the retry of a
 * failed save, and what heals a failover, an older copy under a running gateway, an emptied table and a removed file. A
 * pair that the last reading of the store did not show is unsaved, whatever was written before.
 *
 * Uncertain. Without a clear answer the claim stays, and nothing is guessed: the access token serves while it works, and
 * the refresh token is sent once more shortly before that ends (`dueAt` in state.ts). A 200 then means that nothing was
 * lost. `invalid_grant` means too early, or spent: only the last of several refusals after the expiry is a loss.
 */

export interface TokenParts {
  readonly store: TokenStore;
  readonly service: TokenService;
  readonly emergency: Emergency;
  /** The base URL of the service. A store of another one is refused. */
  readonly serviceUrl: string;
  /** `host/pid`: names this process in the audit trail. */
  readonly by: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** What helps, in messages to the operator. Default: messages say only what is the case. */
  readonly steps?: Steps;
  readonly onExchange?: ((kind: Exchange['kind']) => void) | undefined;
  /** Of a keeper: a token link that is imported if the store is empty or its set is lost. */
  readonly link?: { read(): Promise<Pair> } | undefined;
  /** Of a keeper: whether the detail of a 401 says that the access token has expired. Default: every 401 does */
  readonly meansExpired?: (detail: string) => boolean;
}

const SEND_WITHIN_MS = 25_000;
/** How long to look for a pair that another process saves: less than callers wait, so that they learn why there is none. */
const OTHERS_MS = 25_000;
/** The same after `invalid_grant`: the winner has its answer already. */
const WINNER_MS = 2_000;
const LOOK_MS = 200;
/** How long `close` tries to save a pair that already lies in an emergency file. */
const LAST_TRIES_MS = 5_000;
const SAVE_AGAIN_MS = 500;

/** What this process holds of the token set, and the exchange of its refresh token. All errors have codes. */
export class TokenHolder {
  protected readonly parts: TokenParts;
  protected isClosing = false;
  #state: State | null = null;
  /** Whether the last reading or writing of the store showed the held pair. */
  #isShown = true;
  /** Whether the held pair, which the store lacks, lies in an emergency file. */
  #isInFile = false;
  #isRead = false;
  /** The store's clock minus `elapsed`. */
  #ahead: number;
  #looking: Promise<State | null> | undefined;
  #exchanging: Promise<State> | undefined;

  constructor(parts: TokenParts) {
    this.parts = parts;
    this.#ahead = parts.clock.now() - parts.clock.elapsed();
  }

  get state(): State | null {
    return this.#state;
  }

  /** The store's clock, ms. */
  get now(): number {
    return this.parts.clock.elapsed() + this.#ahead;
  }

  get facts(): Facts {
    return { now: this.now, isUnsaved: !this.#isShown, isUnread: !this.#isRead };
  }

  /** The held set, if it can be refreshed. @throws TOKENS_MISSING, TOKENS_LOST */
  usable(): State {
    const state = this.#state;
    if (!state || state.movedTo !== null) throw this.fatal('missing');
    if (isLost(state, this.now)) throw this.fatal('lost');
    return state;
  }

  /** The error of tokens that are missing (also: moved) or lost. Nothing changes until the operator has acted. */
  fatal(trouble: 'missing' | 'lost'): OperatorError {
    const code = trouble === 'lost' ? 'TOKENS_LOST' : 'TOKENS_MISSING';
    const message = lineOn(trouble, this.#state, this.parts.steps);
    return new OperatorError(code, message);
  }

  /**
   * Reads the store, saves what emergency files hold, and puts the held pair back if the store has lost it.
   *
   * @throws if the store fails or belongs to another service, and if an emergency file cannot be read
   */
  look(): Promise<State | null> {
    return (this.#looking ??= this.#look()
      .catch((error: unknown) => {
        throw storeError(error, this.parts.store);
      })
      .finally(() => (this.#looking = undefined)));
  }

  async #look(): Promise<State | null> {
    const { store, clock, emergency, serviceUrl, log } = this.parts;
    const before = this.#state;
    // Tries again for a pair that could not be written when it arrived.
    if (before && !this.#isShown) this.#isInFile ||= emergency.put(before);
    const { state: read, now } = await store.read();
    this.#isRead = true;
    this.#ahead = now - clock.elapsed();
    // This process has changed the store meanwhile: what was read does not show that it lacks something.
    if (this.#state !== before) return this.#look();
    checkService(read, serviceUrl);
    // It serves, even if what emergency files hold cannot be saved now.
    this.#adopt(read);
    this.#isShown = this.#state === read;
    let unreadable: string | undefined;
    for (const file of emergency.read()) {
      if ('why' in file)
        unreadable = `${file.path} may hold the newest pair, and cannot be read: ${file.why}. Move it elsewhere if it is damaged or of another store`;
      else if (file.received.service === serviceUrl) await this.#save(file.received, file.path);
    }
    if (this.#state && !this.#isShown) {
      await this.#save(this.#state);
      log.warn({ generation: this.#state.generation }, PUT_BACK);
    }
    if (unreadable !== undefined) throw new StoreUnavailable(`the emergency file ${unreadable}`);
    return this.#state;
  }

  /** Takes over what the store has, unless the held pair is newer. */
  #adopt(stored: State | null): void {
    const held = this.#state;
    if (held && (!stored || (stored.id === held.id && stored.generation < held.generation))) return;
    this.#state = stored;
    this.#isShown = true;
    this.#isInFile = false;
  }

  /**
   * Saves a pair that was received. Its emergency file is removed then; the pair of another store stays where it is.
   *
   * @param path where it was found. Default: where this process may have put it
   */
  async #save(received: State, path?: string): Promise<void> {
    const { emergency, by, log } = this.parts;
    const stored = await this.update(save(received, by));
    if (stored.id !== received.id) return;
    emergency.remove(path ?? emergency.pathOf(received));
    const { generation } = stored;
    if (path !== undefined && generation === received.generation) log.warn({ generation }, FOUND);
  }

  /** Changes the store by a rule, and holds what it has then. */
  async update<T>(rule: Rule<T>): Promise<T> {
    const { store, serviceUrl } = this.parts;
    const { state, result } = await store
      .update((before, now) => {
        // Another store may have taken the place of its own since it was read.
        checkService(before, serviceUrl);
        const done = rule(before, now);
        return { ...done, result: { state: done.next ?? before, result: done.result } };
      })
      .catch((error: unknown) => {
        throw storeError(error, store);
      });
    this.#adopt(state);
    return result;
  }

  /** @throws if the store fails: the pair may have been imported all the same */
  import(pair: Pair, replace: boolean): Promise<Imported> {
    const { serviceUrl: service, by } = this.parts;
    return this.update(importPair({ pair, service, by, replace }));
  }

  /** Reports that the service refused the newest access token as expired. */
  async expire(state: State): Promise<State> {
    if (this.now < state.expiresAt) await this.update(expired(state.generation));
    return this.#state ?? state;
  }

  /**
   * Exchanges the refresh token once; all who call it meanwhile share the exchange.
   *
   * @param evenIfLost sends a token that is lost by all that is known
   */
  exchange({ evenIfLost = false } = {}): Promise<State> {
    const begin = () => this.#exchange(evenIfLost);
    return (this.#exchanging ??= begin().finally(() => (this.#exchanging = undefined)));
  }

  /** The exchange under way, of this process or of another one. @returns undefined if there is none */
  underWay(): Promise<State> | undefined {
    const state = this.#state;
    if (this.#exchanging || !state || !isLive(state.claim, this.now)) return this.#exchanging;
    return this.#newerThan(state, OTHERS_MS);
  }

  async #exchange(evenIfLost: boolean): Promise<State> {
    const { service, clock, by, onExchange } = this.parts;
    const from = evenIfLost && this.#state ? this.#state : this.usable();
    // An emergency file may hold a newer pair. If it cannot be read, nothing is sent.
    await this.look();
    const attempt = randomUUID();
    const beganAt = this.now;
    const claimedAt = clock.now();
    const over = from.claim?.attempt ?? null;
    const { generation } = from;
    const claim = takeClaim({ attempt, generation, over, by, evenIfLost });
    const isClaimed = await this.update(claim);
    if (!isClaimed) return this.#newerThan(from, OTHERS_MS);
    // The wall clock, because the other one stops while the machine is suspended.
    const maySend = () => !this.isClosing && clock.now() - claimedAt < SEND_WITHIN_MS;
    const answer = await service.exchange(from.pair, maySend);
    onExchange?.(answer.kind);
    switch (answer.kind) {
      case 'granted':
        return this.#received(from, answer, beganAt);
      case 'unsent':
        return this.#unsent(attempt, answer);
      case 'unclear':
        await this.#end(attempt, answer, answer.why);
        throw notRefreshedError(`no clear answer: ${answer.why}`, 60);
      case 'invalid-grant':
        return this.#refused(from, attempt, answer.why);
    }
  }

  async #received(from: State, { pair, flaw }: { pair: Pair; flaw?: string }, at: number) {
    const { log, emergency } = this.parts;
    if (flaw !== undefined) log.error({ flaw }, UNEXPECTED);
    const next = successor(from, pair, at);
    // Before the store, which can take seconds to fail: a kill in this time must not lose the pair.
    const isInFile = emergency.put(next);
    try {
      await this.#save(next);
      log.info({ generation: next.generation }, 'access token refreshed');
    } catch (error) {
      this.#adopt(next);
      this.#isShown = false;
      this.#isInFile = isInFile;
      log.fatal({ err: error, isInFile }, 'The new token pair could not be saved.');
    }
    return this.#state ?? from;
  }

  async #unsent(attempt: string, { why, retryAfter, isMistake }: Unsent): Promise<never> {
    const notBefore = retryAfter === undefined ? {} : { notBefore: this.now + retryAfter * 1000 };
    await this.#end(attempt, { kind: 'not exchanged', ...notBefore });
    if (!isMistake) throw notRefreshedError(why, retryAfter);
    const text = `The access token could not be refreshed: ${why}. The pair is kept, and a running process tries again by itself.`;
    throw new OperatorError('UPSTREAM_UNAUTHORIZED', text);
  }

  /** Too early, spent, or another process was first. */
  async #refused(from: State, attempt: string, why: string | undefined): Promise<State> {
    const { service } = this.parts;
    const newer = await this.#newerThan(from, WINNER_MS).catch(() => undefined);
    if (newer) return newer;
    if (this.now < from.expiresAt) {
      // Where the access token is refused as well, it was not too early.
      const verdict = await service.check?.(from.pair.accessToken);
      if (verdict?.kind === 'refused') await this.expire(from).catch(() => {});
    }
    const { expiresAt } = this.#state ?? from;
    const isSpent = !service.check || (this.now >= expiresAt && isSpentIfRefused(from));
    await this.#end(attempt, { kind: isSpent ? 'lost' : 'refused' }, why);
    throw isSpent
      ? this.fatal('lost')
      : notRefreshedError('the service refused the refresh token: too early, or spent');
  }

  /** If the end cannot be recorded the claim stays, which means the same as `unclear`. */
  async #end(attempt: string, ending: Ending, why?: string): Promise<void> {
    const { by, log } = this.parts;
    await this.update(endAttempt(attempt, ending, by)).catch(() => {});
    const { kind } = ending;
    if (kind !== 'not exchanged') log.error({ outcome: kind, why }, ENDINGS[kind]);
  }

  /** Waits for the pair of another process. @throws if none comes */
  async #newerThan(from: State, ms: number): Promise<State> {
    const { clock } = this.parts;
    for (const until = clock.elapsed() + ms; ; await clock.sleep(LOOK_MS)) {
      await this.look().catch(() => {});
      const { generation, claim } = this.#state ?? from;
      if (generation > from.generation) return this.#state!;
      const why = claim && isLive(claim, this.now) ? underWay(claim) : NO_PAIR;
      if (why === NO_PAIR || clock.elapsed() >= until) throw notRefreshedError(why);
    }
  }

  /** Begins no exchange any more, and waits until the newest pair is in the store or in an emergency file. */
  async close(): Promise<void> {
    this.isClosing = true;
    await this.#exchanging?.catch(() => {});
    const { clock } = this.parts;
    for (const begun = clock.elapsed(); !this.#isShown; await clock.sleep(SAVE_AGAIN_MS)) {
      await this.look().catch(() => {});
      if (this.#isInFile && clock.elapsed() - begun >= LAST_TRIES_MS) return;
    }
  }
}

/** @param retryAfter seconds */
export function notRefreshedError(why: string, retryAfter = 10): OperatorError {
  const text = `The access token could not be refreshed (${why}). A running process tries again by itself.`;
  return new OperatorError('UPSTREAM_UNREACHABLE', text, { retryAfter });
}

const NO_PAIR = 'another process has tried, and got no new tokens';

const PUT_BACK =
  'the token store lacked the newest pair, which was put back. Find out who emptied the store or restored a copy of it, or why the ' +
  'database lost a commit.';

const FOUND = 'the pair of an emergency file was saved';

const UNEXPECTED =
  'the service answered a refresh in an unexpected way, and its pair was taken. Report the flaw to the service.';

const ENDINGS = {
  unclear: 'The service gave no clear answer to a refresh. The refresh token may be spent.',
  refused:
    'The service refused the refresh token: too early, or spent. It is sent again, not before the access token has expired.',
  lost: 'The refresh token is spent or revoked.',
};
