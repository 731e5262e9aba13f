import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { OperatorMistake } from '../errors.ts';
import {
  accessLeft,
  changesIn,
  holdTokens,
  isFinal,
  isOfPair,
  isSamePair,
  lossOf,
  mayHaveSuccessor,
  nextPair,
  pairToSave,
  replayAt,
  savedPairOf,
  unansweredOf,
  type AccessToken,
  type HeldTokens,
  type TokenSource,
} from './held-tokens.ts';
import { createPairSaver } from './pair-saver.ts';
import type { CheckAccess } from './service/auth-check.ts';
import {
  CLAIM_LIFE_MS,
  StoreGoneError,
  StoreUnreadableError,
  type Ending,
  type StoredClaim,
  type StoredTokens,
  type TokenStore,
  type NewPair,
  type PairOutcome,
} from './store/token-store.ts';
import { mayFollow, type KeptAnswer, type Rescue, type RescueReport } from './store/rescue.ts';
import { SealError } from './store/seal.ts';
import {
  blockedBy,
  busyElsewhereError,
  earlyOrSpentError,
  lostError,
  movedError,
  unreachableError,
  unreadableStoreError,
  unreadRescueError,
  unsavedError,
  unwritableStoreError,
  type Blocker,
  type StoreLoss,
} from './token-errors.ts';
import { ADVICE } from './token-health.ts';
import { pairNamedIn } from './token-set.ts';

export type TokenSync = ReturnType<typeof createTokenSync>;

export interface TokenSyncParts {
  store: TokenStore;
  rescue: Rescue | undefined;
  clock: Clock;
  log: Logger;
  /** The service that the set must belong to. */
  baseUrl: string;
  /** Names this process in the history. */
  replica: string;
  checkAccess: CheckAccess;
  random?: () => number;
  /** Called after every exchange, even if nothing was sent. */
  onExchange?: (outcome: PairOutcome | Ending['outcome'], seconds: number) => void;
}

/**
 * The newest pair that this process knows, kept in step with the store and with other processes.
 *
 * Notices that the store was replaced by an older copy or by another store, that it is gone, or that it is damaged. The
 * newest pair, unless it is lost or moved, is saved into it before anything in it is used.
 */
export function createTokenSync(parts: TokenSyncParts) {
  const { store, rescue, clock, log, baseUrl, replica, random = Math.random } = parts;
  const saver = createPairSaver(parts);
  const answers = createAnsweredPairs(parts);
  const blocked = createBlockedRefresh(parts);
  let tokens: HeldTokens | undefined;
  let storeLosses = 0;
  /** Whether the log says that the service refuses the access token, and not yet that it accepts it again. */
  let refusalIsLogged = false;
  /** The pair that was reported as refused early. */
  let reportedEarly: HeldTokens | undefined;
  /** The number of unanswered exchanges of the pair that the store has lost. */
  let forgotten = 0;
  /** The ends of attempts that the store has not recorded yet. */
  const unrecorded = new Map<string, Ending>();
  let running: Promise<unknown> = Promise.resolve();
  let upcoming: Promise<RescueReport | undefined> | undefined;

  return {
    saver,
    /** Pairs in answers that were not understood. */
    answers,
    /** Whether a refresh is due and cannot begin. */
    blocked,
    get tokens() {
      return tokens;
    },
    /** How often the store was found to be replaced, or gone. */
    get storeLosses() {
      return storeLosses;
    },
    isHeld,
    adopt,
    publish,
    change,
    /** Reports that the service accepted this access token: from now on its expiry is believed. */
    accepted: (token: AccessToken): void => {
      if (!tokens) return;
      const { accepted, expired, unauthorized, generation } = tokens;
      const isKnown = accepted && !expired && !unauthorized;
      if ((isKnown && !refusalIsLogged) || !isOfPair(token, tokens)) return;
      change({ accepted: true, expired: false, unauthorized: false });
      if (!refusalIsLogged) return;
      refusalIsLogged = false;
      log.info({ generation }, 'the service accepts the access token again');
    },
    /** Reports that the service refused this access token, and that no newer one helps. */
    refused: (token: AccessToken): void => {
      if (!tokens || tokens.unauthorized || !isOfPair(token, tokens)) return;
      const { generation } = change({ unauthorized: true });
      refusalIsLogged = true;
      log.error({ trouble: 'unauthorized', generation }, ADVICE.unauthorized);
    },
    /** Reports that the service refused this access token as expired. */
    expired: (token: AccessToken): void => {
      if (tokens && isOfPair(token, tokens)) change({ expired: true });
    },
    /**
     * Takes over what other processes refreshed or imported. Before that, it saves into the store what the store lacks:
     * pairs of rescue files, the newest pair, and how attempts ended. All callers that wait share the next sync, not a
     * running one, which may have read the store before they called.
     */
    sync: async (): Promise<void> => void (await sync()),
    /**
     * Syncs, and takes over the next pair if it has arrived after all: in a rescue file of another process, or in an
     * answer that was not understood.
     *
     * @throws when one of these cannot be read
     */
    recoverPair: async (): Promise<void> => {
      const report = await sync();
      const head = tokens!;
      const mayBeSpent = mayHaveSuccessor(head);
      if (report?.failed.some((file) => mayFollow(file, head, mayBeSpent))) {
        throw unreadRescueError();
      }
      if (mayBeSpent && (await answers.save(head))) await sync();
    },
    /** Records how an attempt ended. Until that can be written, its claim stays in the store. Never rejects. */
    endAttempt: async (attempt: string, ending: Ending): Promise<void> => {
      await store.endAttempt(attempt, ending).catch((error: unknown) => {
        unrecorded.set(attempt, ending);
        const { outcome } = ending;
        log.error(
          { err: error, outcome },
          'the end of an exchange could not be written to the store',
        );
      });
    },
    /** Records at the next sync how an attempt ended. */
    endAttemptLater: (attempt: string, ending: Ending): void =>
      void unrecorded.set(attempt, ending),
    /**
     * Before the process ends, leaves the newest pair in the rescue file, unless the store shows that it has it. Never
     * rejects.
     */
    secure: async (): Promise<void> => {
      // A running sync may take over a pair, or notice damage.
      await running.catch(() => {});
      const newest = tokens;
      if (!newest || isFinal(newest) || saver.pending) return;
      try {
        const stored = await readOrRestore(newest);
        if (stored) expectOurs(stored);
      } catch (error) {
        saver.leave(pairToSave(newest, clock), error);
      }
    },
  };

  /** Takes over what the store holds, if it is newer or of another set. */
  function adopt(stored: StoredTokens): void {
    expectOurs(stored);
    if (tokens?.set === stored.set && tokens.generation > stored.generation) return;
    blocked.read(stored);
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

  /** Takes over the pair of an exchange of this process. */
  function publish(next: TokenSource, bornAt: number): void {
    tokens = holdTokens(next, bornAt, tokens === undefined, random());
    forgotten = 0;
    logRefusal(tokens);
    blocked.began();
  }

  /** Records new facts about the held pair. */
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
    const stored = await readOrRestore(before);
    // An older pair may replace the held one only if that one was already held when the store was read.
    const isLate = tokens !== undefined && (!before || !isSamePair(tokens, before));
    if (stored && !(isLate && stored.generation < tokens!.generation)) {
      const known = tokens;
      adopt(stored);
      logNewer(known, tokens!);
    }
    // A pair that the store does not return may be only in these files.
    if (stored && tokens && report) rescue?.remove(report.newest, tokens);
    if (stored?.claim) await recordPassed(stored.claim);
    if (stored && isForgottenLoss(stored)) await recordLoss(stored);
    return report;
  }

  /** Spares other processes, and commands that start later, the wait for such a claim. */
  async function recordPassed({ attempt, live, isDatedAhead }: StoredClaim): Promise<void> {
    if (live || !isDatedAhead) return;
    await store.endAttempt(attempt, { outcome: 'uncertain', latencyMs: 0 }).catch(() => {});
  }

  async function recordEndings(): Promise<void> {
    for (const [attempt, ending] of unrecorded) {
      await store.endAttempt(attempt, ending).then(
        () => unrecorded.delete(attempt),
        () => {},
      );
    }
  }

  /** Records again a loss that the store has forgotten, as after a failover. */
  async function recordLoss({ set, generation, claim: before }: StoredTokens): Promise<void> {
    // The store cannot be written, or that loss is not recorded yet.
    if (unrecorded.size > 0) return;
    const attempt = randomUUID();
    const over = before?.attempt ?? null;
    const newClaim = { set, generation, attempt, over, lifeMs: CLAIM_LIFE_MS, replica };
    // Nothing is sent for this claim, so it does not wait for the others.
    await store.askOthers?.().catch(() => {});
    const claimed = await store.claim(newClaim).catch(() => undefined);
    if (!claimed) return;
    unrecorded.set(attempt, { outcome: 'invalid-grant', latencyMs: 0 });
    await recordEndings();
  }

  function isForgottenLoss(stored: StoredTokens): boolean {
    if (tokens?.state.kind !== 'lost' || !isSamePair(stored, tokens)) return false;
    return !stored.lost && stored.claim?.live !== true;
  }

  /** Logs once for each pair that it was refused early, whichever process found it out. */
  function logRefusal(now: HeldTokens): void {
    if (now.state.kind !== 'early-or-spent' || (reportedEarly && isSamePair(reportedEarly, now)))
      return;
    reportedEarly = now;
    const inSeconds = Math.max(0, Math.round(accessLeft(now, clock) / 1000));
    const facts = { trouble: 'early-or-spent', generation: now.generation, inSeconds };
    log.error(facts, earlyOrSpentError().message);
  }

  /** Logs that another process saved newer tokens, or that a rescue file or a kept answer had them. */
  function logNewer(known: HeldTokens | undefined, now: HeldTokens): void {
    if ((known && isSamePair(known, now)) || !isUsable(now)) return;
    const news = known ? (isUsable(known) ? NEWER : AVAILABLE_AGAIN) : AVAILABLE;
    log.info({ generation: now.generation }, news);
  }

  function isUsable(pair: HeldTokens): boolean {
    return !isFinal(pair) && lossOf(pair, clock) === undefined;
  }

  /** Logs once that the set was lost, moved or moved back, whichever process or command caused or noticed it. */
  function logEnd({ state: before }: HeldTokens, now: HeldTokens): void {
    const { state, generation } = now;
    if (state.kind === before.kind) return;
    if (state.kind === 'moved') {
      log.error({ trouble: 'moved', generation }, movedError(state.to).message);
    } else if (state.kind === 'lost') {
      log.fatal({ trouble: 'lost', generation }, lostError(state.cause).message);
    } else if (before.kind === 'moved') log.info({ generation }, MOVED_BACK);
  }

  /** Reads the store. If it no longer holds the newest pair, that is saved into it first; null if that fails. */
  async function readOrRestore(newest: HeldTokens | undefined): Promise<StoredTokens | null> {
    // Checked before the store is read: a pair that is saved during the read is not missing in it.
    const isSaved = saver.pending === undefined;
    const before = storeLosses;
    const restore = async (loss: StoreLoss, cause?: unknown) => {
      if (!newest || isFinal(newest) || !isSaved || before !== storeLosses) return;
      // A newer pair may have arrived while the store was read, and is saved by its exchange.
      if (saver.pending || !isHeld(newest)) return;
      storeLosses += 1;
      forgotten = unansweredOf(newest.state);
      await saver.saveAgain(pairToSave(newest, clock), loss, cause);
    };
    try {
      const { stored, loss } = await compare(newest);
      if (!newest || !loss) return stored;
      if (isFinal(newest)) return logReplaced(stored, newest);
      await restore(loss);
    } catch (cause) {
      const loss = lossBehind(cause);
      if (!loss) throw unreadableStoreError(cause);
      await restore(loss, cause);
      if (saver.pending) throw unsavedError(saver.why);
    }
    const { stored, loss } = await compare(newest).catch((cause: unknown) => {
      throw unreadableStoreError(cause);
    });
    // Until the pair is saved, only a set that was imported since is used.
    return !loss || (stored && stored.generation > newest!.generation) ? stored : null;
  }

  /** Nothing is lost if another process imported or exchanged: the store then still holds the newest pair. */
  async function compare(newest: HeldTokens | undefined): Promise<Comparison> {
    for (;;) {
      const stored = await store.read();
      if (!newest || follows(stored, newest)) return { stored, loss: undefined };
      if (!stored) return { stored, loss: store.behind };
      if (!(await store.holds(newest.saved)))
        return { stored, loss: lossIn(stored, newest, store.behind) };
      // Another process may have saved it since that read.
      const again = await store.read();
      if (again && isSamePair(again, stored)) return { stored: again, loss: undefined };
    }
  }

  function logReplaced(stored: StoredTokens | null, { set }: HeldTokens): StoredTokens | null {
    if (!stored || stored.set === set) return stored;
    storeLosses += 1;
    log.fatal({ store: store.description, generation: stored.generation }, REPLACED);
    return stored;
  }
}

interface Comparison {
  readonly stored: StoredTokens | null;
  /** How the store lost the newest pair, if it did. */
  readonly loss: StoreLoss | undefined;
}

function follows(stored: StoredTokens | null, newest: HeldTokens): boolean {
  if (stored?.set !== newest.set) return false;
  return stored.generation > newest.generation || isSamePair(stored, newest);
}

function lossIn(
  { set, storeId }: StoredTokens,
  newest: HeldTokens,
  behind: TokenStore['behind'],
): StoreLoss {
  return set === newest.set || storeId === newest.saved.home?.storeId ? behind : 'other';
}

function lossBehind(cause: unknown): StoreLoss | undefined {
  if (cause instanceof StoreGoneError) return 'gone';
  if (cause instanceof StoreUnreadableError) return 'unreadable';
  if (!(cause instanceof SealError)) return undefined;
  return cause.isAltered ? 'unreadable' : 'sealed';
}

const AVAILABLE = 'tokens were taken over from the token store';
const NEWER = 'newer tokens were taken over from the token store';
const AVAILABLE_AGAIN =
  'the tokens are available again: newer ones were taken over from the token store';
const MOVED_BACK = 'the move to another store was taken back: the tokens can be refreshed again';

const REPLACED =
  'The token store was replaced by an older copy, or by another store, while this process ran, and holds another token ' +
  'set. The set that this process had was lost or moved away, so this process continues with the other one.';

function foreignStoreError(store: TokenStore, theirs: string, ours: string): OperatorMistake {
  return new OperatorMistake(
    `The token store (${store.description}) belongs to ${theirs}, but RECRUITING_URL is ${ours}. ` +
      'Give this service a store of its own with TOKEN_STORE, or correct RECRUITING_URL. The store was not changed.',
  );
}

/** Pairs in answers that were not understood, such as a 503 whose body names one. */
function createAnsweredPairs({ store, rescue, checkAccess, clock, log }: TokenSyncParts) {
  const refused = new Set<string>();

  return {
    /** The kept answers to this refresh token, newest first. */
    kept: (tokens: HeldTokens) =>
      (rescue?.answersTo(tokens) ?? []).map(({ path, unread: { at, answer, namesPair } }) => ({
        path,
        status: answer.status,
        at,
        namesPair,
      })),
    /**
     * Saves the pair that follows into the store, if the service accepts its access token: that proves the pair, and
     * that the refresh token before it is spent.
     *
     * @param unproved saves the pair even if the service rejects its access token: for tokens that are lost anyway
     * @returns undefined when there is no such pair
     * @throws when the service or the store is unavailable: then nothing is known, and nothing may be sent
     */
    save: async (
      tokens: HeldTokens,
      unproved = false,
    ): Promise<'proved' | 'unproved' | undefined> => {
      const candidates = (rescue?.answersTo(tokens) ?? []).flatMap((kept) => pairIn(kept, tokens));
      const mayWait = clock.elapsed() < replayAt(tokens);
      const proved = await firstProved(candidates, mayWait);
      const taken = proved ?? (unproved ? candidates[0] : undefined);
      if (!taken) return undefined;
      await store.save(taken).catch((cause: unknown) => {
        throw unwritableStoreError(cause);
      });
      log.warn(
        { generation: taken.generation + 1 },
        'A token pair was found in an answer that was not understood, and was saved.',
      );
      return proved ? 'proved' : 'unproved';
    },
  };

  async function firstProved(
    candidates: readonly NewPair[],
    mayWait: boolean,
  ): Promise<NewPair | undefined> {
    for (const candidate of candidates) {
      const { accessToken } = candidate.pair;
      if (refused.has(accessToken)) continue;
      const verdict = await checkAccess(accessToken);
      if (verdict.kind === 'works') return candidate;
      if (verdict.kind === 'refused') refused.add(accessToken);
      else if (mayWait) throw unreachableError(new Error(verdict.why));
    }
    return undefined;
  }

  function pairIn({ unread }: KeptAnswer, tokens: HeldTokens): NewPair[] {
    const grant = pairNamedIn(unread.answer);
    const { pair } = tokens;
    // An error page may repeat the pair that was sent: that one works, and proves nothing.
    const isRepeated =
      grant?.refreshToken === pair.refreshToken || grant?.accessToken === pair.accessToken;
    if (!grant || isRepeated) return [];
    const { set, generation, attempt, at, home } = unread;
    return [
      { set, generation, attempt, at, home, latencyMs: 0, ...nextPair(grant, tokens, clock) },
    ];
  }
}

/**
 * Whether a refresh is due and cannot begin: the store cannot be read or written, a rescue file that may hold the next
 * pair cannot be read, or another process keeps the claim. The access token still works then, so without this report
 * callers would be the first to notice, at its expiry.
 */
function createBlockedRefresh({ clock, log, onExchange }: TokenSyncParts) {
  let by: Blocker | undefined;
  /** The claim of another process, or only its lock, and when it was first seen. */
  let busy: { with: string; since: number } | undefined;

  return {
    get isBlocked() {
      return by !== undefined;
    },
    /** How long another process has been seen to hold the claim, ms. */
    get busyMs() {
      return busy ? clock.elapsed() - busy.since : 0;
    },
    /** Reports a refresh that was due and failed. @param generation the one that was due */
    failed: (error: unknown, generation: number | undefined): void => {
      const blocker = blockedBy(error);
      if (blocker === undefined) return;
      // That process may have been stopped before its claim was committed.
      if (blocker === 'another process') return isBusy(LOCK, generation);
      onExchange?.('unsent', 0);
      block(blocker, error as Error, generation);
    },
    /** Reports that a refresh could begin, or that there is a new pair. */
    began: end,
    /** Reports what was read from the store: it shows how long another process has held the claim. */
    read: ({ claim, generation }: StoredTokens): void => {
      if (claim?.live === true) isBusy(claim.attempt, generation);
      else if (busy && busy.with !== LOCK) end();
    },
  };

  function isBusy(attempt: string, generation: number | undefined): void {
    if (busy?.with !== attempt) busy = { with: attempt, since: clock.elapsed() };
    // Longer than any exchange takes: its process was stopped or hangs.
    if (clock.elapsed() - busy.since <= CLAIM_LIFE_MS) return;
    block('another process', busyElsewhereError(), generation);
  }

  function block(blocker: Blocker, error: Error, generation: number | undefined): void {
    if (by === blocker) return;
    by = blocker;
    log.error(
      { trouble: 'blocked', generation, err: error.cause },
      `A refresh is due and cannot begin. ${error.message} The access token works until it expires.`,
    );
  }

  function end(): void {
    busy = undefined;
    if (by === undefined) return;
    by = undefined;
    log.info('refreshes can begin again');
  }
}

const LOCK = 'the lock';
