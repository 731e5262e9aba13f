import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Rescue } from './store/rescue.ts';
import type { NewPair, TokenStore } from './store/token-store.ts';

/** Gets a pair that was received into the store, or failing that into the rescue file. */
export interface PairSaver {
  /** A pair that could not be saved yet; it is tried again and again. */
  readonly pending: NewPair | undefined;
  /** Never rejects: what cannot be saved is pending. */
  save(pair: NewPair): Promise<'head' | 'surplus' | 'pending'>;
  /**
   * Waits until nothing is pending. When its patience ends before that, it makes sure that the pair is in
   * the rescue file, and only then gives up.
   */
  finish(): Promise<void>;
}

export interface PairSaverParts {
  store: TokenStore;
  rescue: Rescue | undefined;
  clock: Clock;
  log: Logger;
}

const RETRY_MS = 500;
const PATIENCE_MS = 5_000;

export function createPairSaver({ store, rescue, clock, log }: PairSaverParts): PairSaver {
  let pending: NewPair | undefined;
  let saving: Promise<void> | undefined;
  let rescued = false;
  let finishBy = Number.POSITIVE_INFINITY;

  return {
    get pending() {
      return pending;
    },
    save: async (pair) => {
      try {
        return (await store.save(pair)) ? 'head' : 'surplus';
      } catch (error) {
        pending = pair;
        log.fatal(
          { err: error, trouble: 'unsaved', generation: pair.generation + 1 },
          'The new token pair could not be saved, and is held in memory. Saving it is tried until it works: ' +
            'free the disk, or give the rights back, and do not kill this process before.',
        );
        putInRescueFile();
        saving = saveUntilDone(pair);
        return 'pending';
      }
    },
    finish: async () => {
      finishBy = clock.elapsed() + PATIENCE_MS;
      await saving;
    },
  };

  async function saveUntilDone(pair: NewPair): Promise<void> {
    for (;;) {
      await clock.sleep(RETRY_MS);
      try {
        await store.save(pair);
        break;
      } catch (error) {
        if (clock.elapsed() < finishBy) continue;
        // Once more: somebody may have taken the rescue file away.
        if (putInRescueFile()) return;
        log.fatal(
          { err: error },
          'The new token pair is saved nowhere. The process stays until it is.',
        );
        finishBy = clock.elapsed() + PATIENCE_MS;
      }
    }
    pending = undefined;
    log.info({ generation: pair.generation + 1 }, 'the new token pair is saved now');
    takeOutOfRescueFile();
  }

  function putInRescueFile(): boolean {
    if (!rescue || !pending) return false;
    try {
      rescue.put(pending);
      rescued = true;
      log.warn('The new token pair is in the rescue file; the next start saves it.');
    } catch (error) {
      rescued = false;
      log.fatal({ err: error }, 'The new token pair could not be put into the rescue file either.');
    }
    return rescued;
  }

  function takeOutOfRescueFile(): void {
    if (!rescued) return;
    rescued = false;
    try {
      rescue?.clear();
    } catch (error) {
      // Saved once more by the next start, which changes nothing.
      log.warn({ err: error }, 'The rescue file could not be emptied.');
    }
  }
}
