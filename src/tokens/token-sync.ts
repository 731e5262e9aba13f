import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { AnsweredPairs } from './answered-pair.ts';
import {
  accessLeft,
  changesIn,
  holdTokens,
  isFinal,
  isSamePair,
  lossOf,
  mayHaveSuccessor,
  savedPairOf,
  unansweredOf,
  type HeldTokens,
  type TokenSource,
} from './held-tokens.ts';
import type { PairSaver } from './pair-saver.ts';
import { createStoreWatch } from './store-watch.ts';
import { mayFollow, type Rescue, type RescueReport } from './store/rescue.ts';
import { earlyOrSpentError, lostError, movedError, unreadRescueError } from './token-errors.ts';
import type { StoredClaim, StoredTokens, TokenStore } from './store/token-store.ts';

/** The newest pair that this process knows, kept in step with the store and with other processes. */
export interface TokenSync {
  readonly tokens: HeldTokens | undefined;
  /** How often the store was found to be replaced, or gone. */
  readonly storeLosses: number;
  /** Takes over what the store holds, if it is newer or of another set. */
  adopt(stored: StoredTokens): void;
  /** Takes over the pair of an exchange of this process. */
  publish(next: TokenSource, bornAt: number): void;
  /** Records something else about the pair that is held. */
  change(facts: Partial<HeldTokens>): HeldTokens;
  /**
   * Takes over what other processes refreshed or imported. Before that, it saves into the store what the store lacks:
   * pairs of rescue files, the newest pair, and how attempts ended. All callers that wait share the next sync: not one
   * that has begun, whose reading may be older than what they know.
   */
  sync(): Promise<void>;
  /**
   * Syncs, and takes over the next pair if it has arrived after all: in a rescue file of another process, or in an
   * answer that was not understood.
   *
   * @throws when one of these cannot be read
   */
  recoverPair(): Promise<void>;
  /**
   * For the end of the process: leaves the newest pair in the rescue file, unless the store shows that it has it. Never
   * rejects.
   */
  secure(): Promise<void>;
}

export interface TokenSyncParts {
  store: TokenStore;
  rescue: Rescue | undefined;
  clock: Clock;
  log: Logger;
  /** The service that the set must belong to. */
  baseUrl: string;
  random?: () => number;
}

interface Surroundings {
  readonly saver: PairSaver;
  readonly answers: AnsweredPairs;
  /** Records how attempts ended that could not be recorded then. Never rejects. */
  recordEndings(): Promise<void>;
  /** Records that the refresh token was refused, which the store does not know any more. Never rejects. */
  recordLoss(stored: StoredTokens): Promise<void>;
  /** Called with what was read from the store. */
  onRead(stored: StoredTokens): void;
  /** Called when there is another pair. */
  onNewPair(): void;
}

export function createTokenSync(
  parts: TokenSyncParts,
  { saver, answers, recordEndings, recordLoss, onRead, onNewPair }: Surroundings,
): TokenSync {
  const { store, rescue, clock, log, baseUrl, random = Math.random } = parts;
  const watch = createStoreWatch(parts, saver);
  let tokens: HeldTokens | undefined;
  /** The pair that was reported as refused early. */
  let alarmed: HeldTokens | undefined;
  /** Unanswered exchanges of the pair that the store no longer knows of. */
  let forgotten = 0;
  let running: Promise<unknown> = Promise.resolve();
  let upcoming: Promise<RescueReport | undefined> | undefined;

  return {
    get tokens() {
      return tokens;
    },
    get storeLosses() {
      return watch.losses;
    },
    adopt,
    publish,
    change,
    sync: async () => void (await sync()),
    recoverPair: async () => {
      const report = await sync();
      const mayBeSpent = mayHaveSuccessor(tokens!);
      const head = { ...tokens!, mayHaveSuccessor: mayBeSpent };
      if (report?.failed.some((file) => mayFollow(file, head))) throw unreadRescueError();
      if (mayBeSpent && (await answers.save(tokens!))) await sync();
    },
    secure: async () => {
      // It may take a pair over, or notice damage.
      await running.catch(() => {});
      const newest = tokens;
      if (!newest || isFinal(newest) || saver.pending) return;
      try {
        const stored = await watch.readOrRestore(newest, isHeld, () => {});
        if (stored) expectOurs(stored);
      } catch (error) {
        saver.leave(newest.saved, error);
      }
    },
  };

  function adopt(stored: StoredTokens): void {
    expectOurs(stored);
    if (tokens?.set === stored.set && tokens.generation > stored.generation) return;
    onRead(stored);
    // The store's clock may have been set back since the save.
    const bornAt = clock.elapsed() - Math.max(0, stored.age);
    if (tokens && isSamePair(tokens, stored)) {
      // A wall clock that was wrong at the start made it look older than it is.
      const isYounger = lossOf(tokens, clock) === 'ended' && bornAt > tokens.bornAt;
      change({ ...changesIn(tokens, stored, forgotten), ...(isYounger && { bornAt }) });
      return;
    }
    publish({ ...stored, saved: savedPairOf(stored, store.description, clock.now()) }, bornAt);
  }

  function isHeld(pair: HeldTokens): boolean {
    return tokens !== undefined && isSamePair(tokens, pair);
  }

  function expectOurs(stored: StoredTokens): void {
    if (stored.baseUrl !== baseUrl) throw foreignStoreError(store, stored.baseUrl, baseUrl);
  }

  function publish(next: TokenSource, bornAt: number): void {
    tokens = holdTokens(next, bornAt, tokens === undefined, random());
    forgotten = 0;
    logRefusal(tokens);
    onNewPair();
  }

  function change(facts: Partial<HeldTokens>): HeldTokens {
    const before = tokens!;
    tokens = { ...before, ...facts };
    logEnd(before, tokens);
    logRefusal(tokens);
    return tokens;
  }

  function sync(): Promise<RescueReport | undefined> {
    upcoming ??= running
      .catch(() => {})
      .then(() => {
        upcoming = undefined;
        const syncing = syncOnce();
        running = syncing;
        return syncing;
      });
    return upcoming;
  }

  async function syncOnce(): Promise<RescueReport | undefined> {
    await recordEndings();
    const report = await rescue?.saveInto(store, baseUrl);
    const before = tokens;
    const stored = await watch.readOrRestore(
      before,
      isHeld,
      (lost) => (forgotten = unansweredOf(lost.state)),
    );
    // An older pair may replace the one that is held only if the store was read with that one in mind.
    const isLate = tokens !== undefined && (!before || !isSamePair(tokens, before));
    if (stored && !(isLate && stored.generation < tokens!.generation)) adopt(stored);
    // A pair that the store does not show may be in these files only.
    if (stored && tokens && report) rescue?.remove(report.newest, tokens);
    if (stored?.claim) await recordPassed(stored.claim);
    if (stored && isForgottenLoss(stored)) await recordLoss(stored);
    return report;
  }

  /** Other processes, and commands that only start now, need not wait for the length of such a claim as well. */
  async function recordPassed({ attempt, live, isDatedAhead }: StoredClaim): Promise<void> {
    if (live || !isDatedAhead) return;
    await store.endAttempt(attempt, { outcome: 'uncertain', latencyMs: 0 }).catch(() => {});
  }

  function isForgottenLoss(stored: StoredTokens): boolean {
    if (tokens?.state.kind !== 'lost' || !isSamePair(stored, tokens)) return false;
    return !stored.lost && stored.claim?.live !== true;
  }

  /** Logs once for each pair that it was refused early, whichever process found it out. */
  function logRefusal(now: HeldTokens): void {
    if (now.state.kind !== 'early-or-spent' || (alarmed && isSamePair(alarmed, now))) return;
    alarmed = now;
    const inSeconds = Math.max(0, Math.round(accessLeft(now, clock) / 1000));
    const facts = { trouble: 'early-or-spent', generation: now.generation, inSeconds };
    log.error(facts, earlyOrSpentError().message);
  }

  /** Logs once that the set is lost or moved, whichever process or command found it out or did it. */
  function logEnd({ state: before }: HeldTokens, now: HeldTokens): void {
    const { state, generation } = now;
    if (state.kind === before.kind) return;
    if (state.kind === 'moved') {
      log.error({ trouble: 'moved', generation }, movedError(state.to).message);
    } else if (state.kind === 'lost') {
      log.fatal({ trouble: 'lost', generation }, lostError(state.cause).message);
    }
  }
}

function foreignStoreError(store: TokenStore, theirs: string, ours: string): Error {
  return new Error(
    `The token store (${store.description}) belongs to ${theirs}, but RECRUITING_URL is ${ours}. ` +
      'Give this service a store of its own with TOKEN_STORE, or correct RECRUITING_URL. The store was not changed.',
  );
}

/**
 * Pauses between looks at the store while another process exchanges: each is twice as long as the one before, and ends
 * early when there is news, which the store may announce.
 */
export function growingPauses(
  clock: Clock,
  { shortest, longest }: { shortest: number; longest: number },
): (isNews: () => boolean) => Promise<void> {
  let next = shortest;
  return async (isNews) => {
    const until = clock.elapsed() + next;
    next = Math.min(longest, 2 * next);
    do await clock.sleep(shortest);
    while (clock.elapsed() < until && !isNews());
  };
}
