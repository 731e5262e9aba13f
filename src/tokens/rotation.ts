import { createAnsweredPairs, type AnsweredPairs } from './answered-pair.ts';
import type { CheckAccess } from './service/auth-check.ts';
import { createDoubt } from './doubt.ts';
import { createExchangeAttempt, type AttemptParts } from './exchange-attempt.ts';
import { headOf, isSamePair, lossOf, savedAs, toldOf, type Head, type HeadSource } from './head.ts';
import { createPairSaver } from './pair-saver.ts';
import { createStoreWatch } from './store-watch.ts';
import { mayFollow, type RescueReport } from './store/rescue.ts';
import {
  busyElsewhereError,
  lostError,
  missingError,
  movedError,
  stoppingError,
  uncertainError,
  unreadRescueError,
  unsavedError,
} from './token-errors.ts';
import type { StoredTokens, TokenStore } from './store/token-store.ts';

/** The newest pair that this process knows, and the exchange that gives the next one. */
export interface Rotation {
  readonly head: Head | undefined;
  /** A pair was received that the store does not have yet. */
  readonly unsaved: boolean;
  /** How often the store was found to have been replaced or taken away. */
  readonly storeLosses: number;
  /** The answer that gave the head held no new refresh token, or no access token. */
  readonly notRenewed: boolean;
  /** What answers held that were not understood. */
  readonly answers: AnsweredPairs;
  /** Takes over what the store holds, when it is newer or of another set. */
  adopt(stored: StoredTokens): void;
  /** Another process may have rotated or imported. */
  lookAtStore(): Promise<void>;
  /** The service took this access token: from now on its expiry is believed. */
  accepted(pair: { set: string; generation: number }): void;
  /** Resolves when no exchange is under way any more, here or in another process, however it ended. */
  settled(): Promise<void>;
  /**
   * One exchange, however many ask. Belongs to the process: no caller's leaving ends it. A refresh token in
   * doubt is sent once more by it.
   */
  rotate(): Promise<Head>;
  /** Milliseconds until something is to be done for the head without anybody asking. */
  untilDue(): number;
  /** Milliseconds until the refresh token is sent once more; undefined when it is not in doubt. */
  untilReplay(): number | undefined;
  /** Does what is due: rotates ahead of the expiry, or looks into an exchange that ended in doubt. */
  advance(): Promise<void>;
  /** No exchange is begun any more; one under way is waited for until its pair is safe. */
  stop(): Promise<void>;
}

export interface RotationParts extends AttemptParts {
  checkAccess: CheckAccess;
  random?: () => number;
}

const WAIT_FOR_OTHERS_MS = 10_000;
const LOOK_AT_STORE_MS = 100;
const IDLE_MS = 30_000;
const IDLE_WITHOUT_TOKENS_MS = 5_000;
const BUSY_MS = 1_000;

export function createRotation(parts: RotationParts): Rotation {
  const { store, rescue, clock, log, baseUrl, random = Math.random } = parts;
  const saver = createPairSaver(parts);
  const watch = createStoreWatch(parts, saver);
  const doubt = createDoubt(parts);
  const answers = createAnsweredPairs(parts);
  const attempt = createExchangeAttempt(parts, saver, {
    isStopping: () => stopped,
    isOvertaken: async (from) => {
      await lookAtStore();
      return !isSamePair(head!, from);
    },
    isAnswered: async (from) => {
      await lookForAnswer();
      return !isSamePair(head!, from);
    },
  });
  let head: Head | undefined;
  let inFlight: Promise<Head> | undefined;
  let notRenewed = false;
  /** Unanswered exchanges of the head that the store has forgotten. */
  let forgotten = 0;
  let stopped = false;
  let quiet: { until: number; error: Error } | undefined;

  const rotate = () => (inFlight ??= exchangeOnce().finally(() => (inFlight = undefined)));

  return {
    get head() {
      return head;
    },
    get unsaved() {
      return saver.pending !== undefined;
    },
    get storeLosses() {
      return watch.losses;
    },
    get notRenewed() {
      return notRenewed;
    },
    answers,
    adopt,
    lookAtStore,
    accepted: (pair) => {
      if (head && !head.accepted && isSamePair(head, pair)) head = { ...head, accepted: true };
    },
    settled: async () => {
      await inFlight?.catch(() => {});
      const until = clock.elapsed() + WAIT_FOR_OTHERS_MS;
      const isBusy = () => head?.busy === true && clock.elapsed() < until;
      while (isBusy()) {
        await clock.sleep(LOOK_AT_STORE_MS);
        await lookAtStore();
      }
    },
    rotate,
    untilDue: () => {
      if (!head || head.movedTo !== null || lossOf(head, clock)) return IDLE_WITHOUT_TOKENS_MS;
      if (saver.pending) return IDLE_MS;
      if (head.busy) return BUSY_MS;
      const at = head.doubtful ? doubt.dueAt(head) : head.rotateAt;
      return Math.max(at, quiet?.until ?? 0) - clock.elapsed();
    },
    untilReplay: () => (head?.doubtful ? doubt.dueAt(head) - clock.elapsed() : undefined),
    advance: async () => {
      if (head?.doubtful && !(await doubt.mustReplay(head))) return;
      await rotate();
    },
    stop: async () => {
      stopped = true;
      await inFlight?.catch(() => {});
      await saver.finish();
    },
  };

  function adopt(stored: StoredTokens): void {
    if (stored.baseUrl !== baseUrl) throw foreignStoreError(store, stored.baseUrl, baseUrl);
    if (head?.set === stored.set && head.generation > stored.generation) return;
    // The wall clock may have been set back while we were away; an age is never negative.
    const bornAt = clock.elapsed() - Math.max(0, clock.now() - stored.savedAt);
    if (head && isSamePair(head, stored)) {
      const before = head;
      // A wall clock that was wrong at the start made it look older than it is.
      const isYounger = lossOf(before, clock) === 'ended' && bornAt > before.bornAt;
      head = { ...toldOf(before, stored, forgotten), ...(isYounger && { bornAt }) };
      sayNews(before, head);
      return;
    }
    publish({ ...stored, saved: savedAs(stored, store.description) }, bornAt);
  }

  function publish(next: HeadSource, bornAt: number): void {
    head = headOf(next, bornAt, head === undefined, random());
    quiet = undefined;
    forgotten = 0;
  }

  async function lookAtStore(): Promise<void> {
    await lookEverywhere();
  }

  /** What others received may lie in a rescue file, and not in what lies in the place of the store. */
  async function lookEverywhere(): Promise<RescueReport | undefined> {
    await attempt.tellStore();
    const report = await rescue?.saveInto(store, baseUrl);
    const before = head;
    const stored = await watch.read(before, (lost) => (forgotten = lost.unanswered));
    // What is older than the head may take its place only when it was looked for with this head in mind.
    const isLate = head !== undefined && (!before || !isSamePair(head, before));
    if (stored && !(isLate && stored.generation < head!.generation)) adopt(stored);
    return report;
  }

  async function exchangeOnce(): Promise<Head> {
    const from = exchangeable();
    const until = clock.elapsed() + WAIT_FOR_OTHERS_MS;
    for (;;) {
      await lookForAnswer();
      const newest = exchangeable();
      if (!isSamePair(newest, from)) return newest;
      // The doubt came while others were waited for: as long as the access token works, it can wait too.
      if (newest.doubtful && !from.doubtful && !(await doubt.mustReplay(newest))) {
        throw uncertainError();
      }
      if (quiet && clock.elapsed() < quiet.until) throw quiet.error;
      const done = newest.busy ? undefined : await exchange(newest);
      if (done) return done;
      if (clock.elapsed() >= until) throw busyElsewhereError();
      await clock.sleep(LOOK_AT_STORE_MS);
    }
  }

  /**
   * The pair may have arrived, and lie where its process left it, or in an answer that was not understood.
   *
   * @throws when that cannot be read
   */
  async function lookForAnswer(): Promise<void> {
    const report = await lookEverywhere();
    if (report?.failed.some((file) => mayFollow(file, head!))) throw unreadRescueError();
    if (head!.doubtful && (await answers.takeUp(head!))) await lookAtStore();
  }

  /** The head, if it may be sent. */
  function exchangeable(): Head {
    if (stopped) throw stoppingError();
    if (!head) throw missingError();
    if (head.movedTo !== null) throw movedError(head.movedTo);
    const loss = lossOf(head, clock);
    if (loss) throw lostError(loss);
    if (saver.pending) throw unsavedError(saver.why);
    return head;
  }

  /** Undefined when another process was first. */
  async function exchange(from: Head): Promise<Head | undefined> {
    const result = await attempt.exchange(from);
    switch (result.kind) {
      case 'kept':
        // An import that came meanwhile is the newer set; of two pairs the store has chosen one.
        if (head!.set === from.set && !result.surplus) publish(result.next, result.bornAt);
        else await lookAtStore();
        notRenewed = result.next.saved.outcome !== 'rotated';
        log.info({ generation: head!.generation }, 'access token rotated');
        return head!;
      case 'overtaken':
        return undefined;
      case 'lost': {
        const before = head!;
        head = { ...before, lost: true, doubtful: false, doubt: null };
        sayNews(before, head);
        throw lostError(lossOf(head, clock)!);
      }
      case 'doubtful':
        if (!isSamePair(head!, from)) return head!;
        head = {
          ...head!,
          doubtful: true,
          doubt: result.attempt,
          unanswered: from.unanswered + 1,
        };
        doubt.begun(head, result.why);
        return resolve(head);
      case 'postponed':
        throw pause(result.seconds, result.error);
    }
  }

  /** Once, whoever found it out: this process, another gateway, or a command. */
  function sayNews(before: Head, now: Head): void {
    const { lost, movedTo, generation } = now;
    if (movedTo !== null && before.movedTo === null) {
      log.error({ trouble: 'moved', generation }, movedError(movedTo).message);
    } else if (lost && !before.lost) {
      log.fatal({ trouble: 'lost', generation }, lostError(lossOf(now, clock)!).message);
    }
  }

  /**
   * The first doubt about an access token that does not work is resolved at once: the refresh token is all
   * there is, so that it is sent once more. Later ones take their time.
   */
  async function resolve(doubtful: Head): Promise<Head> {
    await lookForAnswer().catch(() => {});
    if (!isSamePair(head!, doubtful)) return head!;
    if (doubtful.unanswered > 1) throw pause(doubt.patience(doubtful), uncertainError());
    const replay = !stopped && (await doubt.mustReplay(doubtful).catch(() => false));
    const done = replay ? await exchange(doubtful) : undefined;
    if (done) return done;
    throw uncertainError();
  }

  /** Callers who come within the next seconds get the same answer without another call. */
  function pause<E extends Error>(seconds: number, error: E): E {
    quiet = { until: clock.elapsed() + seconds * 1000, error };
    return error;
  }
}

function foreignStoreError(store: TokenStore, theirs: string, ours: string): Error {
  return new Error(
    `The token store (${store.description}) belongs to ${theirs}, but RECRUITING_URL is ${ours}. ` +
      'Give this service a store of its own with TOKEN_STORE, or correct RECRUITING_URL. The store was not changed.',
  );
}
