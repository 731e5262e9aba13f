import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { AnsweredPairs } from './answered-pair.ts';
import { headOf, isSamePair, lossOf, savedAs, toldOf, type Head, type HeadSource } from './head.ts';
import type { PairSaver } from './pair-saver.ts';
import { createStoreWatch } from './store-watch.ts';
import { mayFollow, type Rescue, type RescueReport } from './store/rescue.ts';
import { lostError, movedError, unreadRescueError } from './token-errors.ts';
import type { StoredTokens, TokenStore } from './store/token-store.ts';

/** The newest pair that this process knows, and how it learns of newer ones from others. */
export interface KnownHead {
  readonly head: Head | undefined;
  /** How often the store was found to have been replaced or taken away. */
  readonly storeLosses: number;
  /** Takes over what the store holds, when it is newer or of another set. */
  adopt(stored: StoredTokens): void;
  /** Takes over what an exchange of this process gave. */
  publish(next: HeadSource, bornAt: number): void;
  /** The same pair, of which something else is known now. */
  change(facts: Partial<Head>): Head;
  /** Another process may have rotated or imported. */
  lookAtStore(): Promise<void>;
  /**
   * The pair may have arrived, and lie where its process left it, or in an answer that was not understood.
   *
   * @throws when that cannot be read
   */
  lookForAnswer(): Promise<void>;
}

export interface KnownHeadParts {
  store: TokenStore;
  rescue: Rescue | undefined;
  clock: Clock;
  log: Logger;
  /** Which service the set must belong to. */
  baseUrl: string;
  random?: () => number;
}

interface Surroundings {
  readonly saver: PairSaver;
  readonly answers: AnsweredPairs;
  /** What the store could not be told before. */
  tellStore(): Promise<void>;
  /** This was read of the store. */
  saw(stored: StoredTokens): void;
  /** There is another pair. */
  renewed(): void;
}

export function createKnownHead(
  parts: KnownHeadParts,
  { saver, answers, tellStore, saw, renewed }: Surroundings,
): KnownHead {
  const { store, rescue, clock, log, baseUrl, random = Math.random } = parts;
  const watch = createStoreWatch(parts, saver);
  let head: Head | undefined;
  /** Unanswered exchanges of the head that the store has forgotten. */
  let forgotten = 0;

  return {
    get head() {
      return head;
    },
    get storeLosses() {
      return watch.losses;
    },
    adopt,
    publish,
    change,
    lookAtStore,
    lookForAnswer: async () => {
      const report = await lookEverywhere();
      if (report?.failed.some((file) => mayFollow(file, head!))) throw unreadRescueError();
      if (head!.doubtful && (await answers.takeUp(head!))) await lookAtStore();
    },
  };

  function adopt(stored: StoredTokens): void {
    if (stored.baseUrl !== baseUrl) throw foreignStoreError(store, stored.baseUrl, baseUrl);
    if (head?.set === stored.set && head.generation > stored.generation) return;
    saw(stored);
    // The wall clock may have been set back while we were away; an age is never negative.
    const bornAt = clock.elapsed() - Math.max(0, clock.now() - stored.savedAt);
    if (head && isSamePair(head, stored)) {
      // A wall clock that was wrong at the start made it look older than it is.
      const isYounger = lossOf(head, clock) === 'ended' && bornAt > head.bornAt;
      change({ ...toldOf(head, stored, forgotten), ...(isYounger && { bornAt }) });
      return;
    }
    publish({ ...stored, saved: savedAs(stored, store.description) }, bornAt);
  }

  function publish(next: HeadSource, bornAt: number): void {
    head = headOf(next, bornAt, head === undefined, random());
    forgotten = 0;
    renewed();
  }

  function change(facts: Partial<Head>): Head {
    const before = head!;
    head = { ...before, ...facts };
    sayNews(before, head);
    return head;
  }

  async function lookAtStore(): Promise<void> {
    await lookEverywhere();
  }

  /** What others received may lie in a rescue file, and not in what lies in the place of the store. */
  async function lookEverywhere(): Promise<RescueReport | undefined> {
    await tellStore();
    const report = await rescue?.saveInto(store, baseUrl);
    const before = head;
    const stored = await watch.read(before, (lost) => (forgotten = lost.unanswered));
    // What is older than the head may take its place only when it was looked for with this head in mind.
    const isLate = head !== undefined && (!before || !isSamePair(head, before));
    if (stored && !(isLate && stored.generation < head!.generation)) adopt(stored);
    return report;
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
}

function foreignStoreError(store: TokenStore, theirs: string, ours: string): Error {
  return new Error(
    `The token store (${store.description}) belongs to ${theirs}, but RECRUITING_URL is ${ours}. ` +
      'Give this service a store of its own with TOKEN_STORE, or correct RECRUITING_URL. The store was not changed.',
  );
}
