import type { Logger } from 'pino';
import { within, type Clock } from '../clock.ts';
import type { StoreLoss, UnsavedCause } from './token-errors.ts';
import { readsBack, type Rescue } from './store/rescue.ts';
import type { NewPair, TokenStore } from './store/token-store.ts';

interface Parts {
  store: TokenStore;
  rescue: Rescue | undefined;
  clock: Clock;
  log: Logger;
}

const RETRY_MS = 500;
/** How long a pair may be only in the memory of this process. */
const SLOW_MS = 1_000;
const PATIENCE_MS = 5_000;

/** Saves a pair that was received: to the store, or if that fails, to the rescue file. */
export function createPairSaver({ store, rescue, clock, log }: Parts) {
  let pending: NewPair | undefined;
  let why: UnsavedCause = 'unwritable';
  let saving: Promise<void> | undefined;
  let underWay: { pair: NewPair; saved: Promise<boolean> } | undefined;
  let rescued = false;
  let finishBy = Number.POSITIVE_INFINITY;

  return {
    /** A pair that is not in the store yet. Saving it is retried until it succeeds. */
    get pending() {
      return pending;
    },
    /** Why it is not in the store. */
    get why() {
      return why;
    },
    /**
     * Saves a new pair. A pair that is not saved within a second is pending. Never rejects.
     *
     * @returns `second` when the store has another pair of the same generation in use
     */
    save: async (pair: NewPair): Promise<'newest' | 'second' | 'pending'> => {
      if (rescue?.stays) leaveCopy(pair);
      try {
        const isNewest = await saveOnce(pair);
        // A process that starts may not read a pair that is not the head.
        if (pending || !isNewest) await expectReadBack(pair);
        isSaved(pair);
        return isNewest ? 'newest' : 'second';
      } catch (error) {
        hold(pair, 'unwritable', error);
        saving = saveUntilDone(pair);
        return 'pending';
      }
    },
    /** Saves a pair that the store has lost, or may have lost. Resolves after one try; never rejects. */
    saveAgain: async (pair: NewPair, loss: StoreLoss, cause?: unknown): Promise<void> => {
      hold(pair, loss, cause);
      const firstTry = saveAndReadBack(pair).then(
        () => isSaved(pair),
        (error: unknown) => log.error({ err: error }, 'the token pair could not be saved again'),
      );
      saving = firstTry.then(() => (pending === pair ? saveUntilDone(pair) : undefined));
      await firstTry;
    },
    /** Before the process ends, puts a pair into the rescue file that the store may not have. */
    leave: (pair: NewPair, cause: unknown): void => {
      if (pending) return;
      log.error({ trouble: 'unsaved', store: store.description, err: cause }, LEFT_IN_RESCUE_FILE);
      putInRescueFile(pair);
    },
    /**
     * Waits until no pair is pending, or for five seconds and then until the pair is in the rescue file. It does not wait
     * for a store that needs the operator.
     */
    finish: async (): Promise<void> => {
      finishBy = clock.elapsed() + (LASTING.has(why) ? 0 : PATIENCE_MS);
      await saving;
    },
  };

  /** Saves, or waits for a save of the same pair that still hangs. */
  function saveOnce(pair: NewPair): Promise<boolean> {
    if (underWay?.pair !== pair) {
      const call = { pair, saved: store.save(pair) };
      const end = () => {
        if (underWay === call) underWay = undefined;
      };
      call.saved.then(end, end);
      underWay = call;
    }
    return within(clock, underWay.saved, () => SLOW_MS, 'the token store');
  }

  async function saveAndReadBack(pair: NewPair): Promise<void> {
    await saveOnce(pair);
    await expectReadBack(pair);
  }

  /** Called before the rescue file is emptied, because a damaged store may not return what it accepted. */
  async function expectReadBack(pair: NewPair): Promise<void> {
    if (await within(clock, readsBack(store, pair), () => SLOW_MS, 'the token store')) return;
    throw new Error('the token store accepted the pair, but does not return it');
  }

  function hold(pair: NewPair, cause: UnsavedCause, error?: unknown): void {
    pending = pair;
    why = cause;
    const facts = { trouble: 'unsaved', store: store.description, generation: pair.generation + 1 };
    log.fatal({ ...facts, ...(error !== undefined && { err: error }) }, HELD[cause]);
    putInRescueFile(pair);
  }

  async function saveUntilDone(pair: NewPair): Promise<void> {
    for (;;) {
      await clock.sleep(RETRY_MS);
      // The next pair may have arrived since.
      if (pending !== pair) return;
      try {
        await saveAndReadBack(pair);
        return isSaved(pair);
      } catch (error) {
        if (clock.elapsed() < finishBy) continue;
        // Again: the rescue file may have been removed since.
        if (putInRescueFile(pair)) return;
        log.fatal(
          { err: error },
          'The new token pair is neither in the store nor in a rescue file. Free the disk, or restore the permissions; the process does not end before the pair is saved.',
        );
        finishBy = clock.elapsed() + PATIENCE_MS;
      }
    }
  }

  /** Ends the wait for this pair, and for older ones, which it replaces. */
  function isSaved({ set, generation }: NewPair): void {
    if (pending?.set !== set || pending.generation > generation) return;
    pending = undefined;
    log.info({ generation: generation + 1 }, 'the new token pair is saved now');
    takeOutOfRescueFile();
  }

  function leaveCopy(pair: NewPair): void {
    try {
      rescue?.put(pair);
    } catch (error) {
      log.warn(
        { err: error },
        'A second copy of the token pair could not be left in a rescue file.',
      );
    }
  }

  function putInRescueFile(pair: NewPair): boolean {
    if (!rescue) return false;
    try {
      rescue.put(pair);
      rescued = true;
      log.warn('The new token pair is in the rescue file; the next start saves it.');
    } catch (error) {
      rescued = false;
      log.fatal({ err: error }, 'The new token pair could not be put into the rescue file either.');
    }
    return rescued;
  }

  function takeOutOfRescueFile(): void {
    if (!rescued || rescue?.stays) return;
    rescued = false;
    try {
      rescue?.clear();
    } catch (error) {
      // The next start saves it again, which changes nothing.
      log.warn({ err: error }, 'The rescue file could not be emptied.');
    }
  }
}

/** Causes that only the operator can remove. */
const LASTING: ReadonlySet<UnsavedCause> = new Set(['gone', 'sealed', 'unreadable']);

const LEFT_IN_RESCUE_FILE =
  'The token store did not show at the end that it has the newest token pair. So the pair is in the rescue file: do not ' +
  'remove that. The next start looks at it, and saves the pair if the store lacks it.';

const HELD: Record<UnsavedCause, string> = {
  unwritable:
    'The new token pair could not be saved, and is held in memory while saving is tried again. ' +
    'Repair the disk, the permissions or the database server, and do not kill this process before the pair is saved.',
  older:
    'The token store was replaced by an older copy, or an empty one, while this process ran. The refresh token in ' +
    'an older copy is spent, so the newest token pair is held in memory until it is saved into the replacement. ' +
    'Do not restore a backup again, and do not kill this process before it logs that the pair is saved.',
  failover:
    'The database server of the token store has lost the newest token pair, which was committed: a failover to a server ' +
    'that lagged behind, or an older copy of the database. The pair is held in memory until it is saved again, by every gateway that ' +
    'has it. Synchronous replication prevents this.',
  other:
    'The token store was replaced by another one, with other tokens, while this process ran. The newest token pair is ' +
    'held in memory until it is saved behind the tokens of that store; then this process continues with the tokens of ' +
    'that store. If the store was not replaced on purpose, find out what replaced it.',
  gone:
    'The file of the token store is gone, or is not a token store. The newest token pair is held in memory, and in the ' +
    'rescue file if there is one. Move away any other file in its place and run `tokens recover`, which makes a new store ' +
    'with the pair; this process then continues by itself. Do not restore a backup.',
  sealed:
    'The token store cannot be read with the keys of this process: another process encrypted it with another key, or ' +
    'it was replaced by another file. The newest token pair that this process knows is held in memory, and in the ' +
    'rescue file if there is one. Restart this process with both keys in TOKEN_STORE_KEY, the new one first.',
  unreadable:
    'The token store answers, and can no longer be read: tables or rows were removed or altered, or it refuses this ' +
    'process. The newest token pair is held in memory, and in the rescue file if there is one. Find out what changed it; ' +
    'then run `tokens recover`, and follow its output: it makes missing tables again, and saves the pair. This process ' +
    'then continues by itself. Do not restore a backup.',
};
