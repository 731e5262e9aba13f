import { createBlockedRotation } from './blocked-rotation.ts';
import type { CheckAccess } from './service/auth-check.ts';
import { createDoubt } from './doubt.ts';
import { createExchangeAttempt, type AttemptParts } from './exchange-attempt.ts';
import {
  headOf,
  isSamePair,
  lossOf,
  savedAs,
  standing,
  type Head,
  type HeadSource,
} from './head.ts';
import { createPairSaver } from './pair-saver.ts';
import { createStoreWatch } from './store-watch.ts';
import type { BoundedStore } from './store/bounded-store.ts';
import type { Rescue } from './store/rescue.ts';
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
  /** The answer that gave the head held no new refresh token, or no access token. */
  readonly notRenewed: boolean;
  /** A rotation is due, and cannot begin. */
  readonly blocked: boolean;
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
  store: BoundedStore;
  checkAccess: CheckAccess;
  rescue: Rescue | undefined;
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
  const watch = createStoreWatch(store, saver);
  const doubt = createDoubt(parts);
  const blocked = createBlockedRotation(parts);
  const attempt = createExchangeAttempt(parts, saver, {
    isStopping: () => stopped,
    onMark: blocked.began,
    isOvertaken: async (from) => {
      await lookAtStore();
      return !isSamePair(head!, from);
    },
    isAnswered: async (from) => {
      await lookForAnswer(from);
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

  const rotate = () => {
    inFlight ??= exchangeOnce()
      .catch((error: unknown) => {
        if (!stopped) blocked.failed(error, head?.generation);
        throw error;
      })
      .finally(() => {
        inFlight = undefined;
      });
    return inFlight;
  };

  return {
    get head() {
      return head;
    },
    get unsaved() {
      return saver.pending !== undefined;
    },
    get notRenewed() {
      return notRenewed;
    },
    get blocked() {
      return blocked.is;
    },
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
      store.hurry();
      await inFlight?.catch(() => {});
      await saver.finish();
    },
  };

  function adopt(stored: StoredTokens): void {
    if (stored.baseUrl !== baseUrl) throw foreignStoreError(store, stored.baseUrl, baseUrl);
    if (head?.set === stored.set && head.generation > stored.generation) return;
    blocked.saw(stored);
    // The wall clock may have been set back while we were away; an age is never negative.
    const bornAt = clock.elapsed() - Math.max(0, clock.now() - stored.savedAt);
    if (head && isSamePair(head, stored)) {
      // A wall clock that was wrong at the start made it look older than it is.
      const isYounger = lossOf(head, clock) === 'ended' && bornAt > head.bornAt;
      // Refused for good, and the store could not be told: it goes on saying that there is hope.
      const refused = head.lost && { lost: true, doubtful: false, doubt: null };
      const told = standing(stored);
      const unanswered = Math.max(told.unanswered, forgotten);
      const stillOpen = forgotten > 0 && { unanswered, doubtful: !told.busy };
      head = { ...head, ...(isYounger && { bornAt }), ...told, ...stillOpen, ...refused };
      return;
    }
    publish({ ...stored, saved: savedAs(stored, store.description) }, bornAt);
  }

  function publish(next: HeadSource, bornAt: number): void {
    head = headOf(next, bornAt, head === undefined, random());
    quiet = undefined;
    forgotten = 0;
    blocked.began();
  }

  async function lookAtStore(): Promise<void> {
    await attempt.tellStore();
    const stored = await watch.read(head, (lost) => (forgotten = lost.unanswered));
    if (stored) adopt(stored);
  }

  async function exchangeOnce(): Promise<Head> {
    const from = exchangeable();
    const until = clock.elapsed() + WAIT_FOR_OTHERS_MS;
    for (;;) {
      await lookAtStore();
      if (head!.doubtful) await lookForAnswer(from);
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

  /** The pair may have arrived, and lie where its process left it. */
  async function lookForAnswer({ set: ours }: Head): Promise<void> {
    const report = await rescue?.saveInto(store);
    if (report?.failed.some(({ set }) => set === undefined || set === ours)) {
      throw unreadRescueError();
    }
    await lookAtStore();
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
      case 'lost':
        head = { ...head!, lost: true, doubtful: false, doubt: null };
        return sayLost(head);
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

  function sayLost(lost: Head): never {
    const error = lostError(lossOf(lost, clock)!);
    log.fatal({ trouble: 'lost', generation: lost.generation }, error.message);
    throw error;
  }

  /**
   * The first doubt about an access token that does not work is resolved at once: the refresh token is all
   * there is, so that it is sent once more. Later ones take their time.
   */
  async function resolve(doubtful: Head): Promise<Head> {
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
