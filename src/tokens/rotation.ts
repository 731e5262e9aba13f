import { createAnsweredPairs, type AnsweredPairs } from './answered-pair.ts';
import { createBlockedRotation } from './blocked-rotation.ts';
import type { CheckAccess } from './service/auth-check.ts';
import { createDoubt } from './doubt.ts';
import { createExchangeAttempt, type AttemptParts } from './exchange-attempt.ts';
import { isSamePair, lossOf, type Head } from './head.ts';
import { createKnownHead, type KnownHead, type KnownHeadParts } from './known-head.ts';
import { createPairSaver } from './pair-saver.ts';
import type { BoundedStore } from './store/bounded-store.ts';
import {
  busyElsewhereError,
  lostError,
  missingError,
  movedError,
  stoppingError,
  uncertainError,
  unsavedError,
} from './token-errors.ts';

/** The newest pair that this process knows, and the exchange that gives the next one. */
export interface Rotation extends Pick<
  KnownHead,
  'head' | 'storeLosses' | 'adopt' | 'lookAtStore'
> {
  /** A pair was received that the store does not have yet. */
  readonly unsaved: boolean;
  /** The answer that gave the head held no new refresh token, or no access token. */
  readonly notRenewed: boolean;
  /** A rotation is due, and cannot begin. */
  readonly blocked: boolean;
  /** What answers held that were not understood. */
  readonly answers: AnsweredPairs;
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

export interface RotationParts extends AttemptParts, KnownHeadParts {
  store: BoundedStore;
  checkAccess: CheckAccess;
}

const WAIT_FOR_OTHERS_MS = 10_000;
const LOOK_AT_STORE_MS = 100;
const IDLE_MS = 30_000;
const IDLE_WITHOUT_TOKENS_MS = 5_000;
const BUSY_MS = 1_000;

export function createRotation(parts: RotationParts): Rotation {
  const { store, clock, log } = parts;
  const saver = createPairSaver(parts);
  const doubt = createDoubt(parts);
  const answers = createAnsweredPairs(parts);
  const blocked = createBlockedRotation(parts);
  const known: KnownHead = createKnownHead(parts, {
    saver,
    answers,
    tellStore: () => attempt.tellStore(),
    saw: blocked.saw,
    renewed: () => {
      quiet = undefined;
      blocked.began();
    },
  });
  const attempt = createExchangeAttempt(parts, saver, {
    isStopping: () => stopped,
    onMark: blocked.began,
    isOvertaken: async (from) => {
      await known.lookAtStore();
      return !isSamePair(known.head!, from);
    },
    isAnswered: async (from) => {
      await known.lookForAnswer();
      return !isSamePair(known.head!, from);
    },
  });
  let inFlight: Promise<Head> | undefined;
  let notRenewed = false;
  let stopped = false;
  let quiet: { until: number; error: Error } | undefined;

  const rotate = () => {
    inFlight ??= exchangeOnce()
      .catch((error: unknown) => {
        if (!stopped) blocked.failed(error, known.head?.generation);
        throw error;
      })
      .finally(() => {
        inFlight = undefined;
      });
    return inFlight;
  };

  return {
    get head() {
      return known.head;
    },
    get unsaved() {
      return saver.pending !== undefined;
    },
    get storeLosses() {
      return known.storeLosses;
    },
    get notRenewed() {
      return notRenewed;
    },
    get blocked() {
      return blocked.is;
    },
    answers,
    adopt: known.adopt,
    lookAtStore: known.lookAtStore,
    accepted: (pair) => {
      const { head } = known;
      if (head && !head.accepted && isSamePair(head, pair)) known.change({ accepted: true });
    },
    settled: async () => {
      await inFlight?.catch(() => {});
      const until = clock.elapsed() + WAIT_FOR_OTHERS_MS;
      const isBusy = () => known.head?.busy === true && clock.elapsed() < until;
      while (isBusy()) {
        await clock.sleep(LOOK_AT_STORE_MS);
        await known.lookAtStore();
      }
    },
    rotate,
    untilDue: () => {
      const { head } = known;
      if (!head || head.movedTo !== null || lossOf(head, clock)) return IDLE_WITHOUT_TOKENS_MS;
      if (saver.pending) return IDLE_MS;
      if (head.busy) return BUSY_MS;
      const at = head.doubtful ? doubt.dueAt(head) : head.rotateAt;
      return Math.max(at, quiet?.until ?? 0) - clock.elapsed();
    },
    untilReplay: () =>
      known.head?.doubtful ? doubt.dueAt(known.head) - clock.elapsed() : undefined,
    advance: async () => {
      if (known.head?.doubtful && !(await doubt.mustReplay(known.head))) return;
      await rotate();
    },
    stop: async () => {
      stopped = true;
      store.hurry();
      await inFlight?.catch(() => {});
      await saver.finish();
    },
  };

  async function exchangeOnce(): Promise<Head> {
    const from = exchangeable();
    const until = clock.elapsed() + WAIT_FOR_OTHERS_MS;
    for (;;) {
      await known.lookForAnswer();
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

  /** The head, if it may be sent. */
  function exchangeable(): Head {
    const { head } = known;
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
        if (known.head!.set === from.set && !result.surplus) {
          known.publish(result.next, result.bornAt);
        } else await known.lookAtStore();
        notRenewed = result.next.saved.outcome !== 'rotated';
        log.info({ generation: known.head!.generation }, 'access token rotated');
        return known.head!;
      case 'overtaken':
        return undefined;
      case 'lost': {
        const lost = known.change({ lost: true, doubtful: false, doubt: null });
        throw lostError(lossOf(lost, clock)!);
      }
      case 'doubtful': {
        if (!isSamePair(known.head!, from)) return known.head!;
        const unanswered = from.unanswered + 1;
        const doubtful = known.change({ doubtful: true, doubt: result.attempt, unanswered });
        doubt.begun(doubtful, result.why);
        return resolve(doubtful);
      }
      case 'postponed':
        throw pause(result.seconds, result.error);
    }
  }

  /**
   * The first doubt about an access token that does not work is resolved at once: the refresh token is all
   * there is, so that it is sent once more. Later ones take their time.
   */
  async function resolve(doubtful: Head): Promise<Head> {
    await known.lookForAnswer().catch(() => {});
    if (!isSamePair(known.head!, doubtful)) return known.head!;
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
