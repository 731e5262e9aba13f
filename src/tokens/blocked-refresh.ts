import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { blockedBy, busyElsewhereError, type Blocker } from './token-errors.ts';
import { CLAIM_LIFE_MS, type StoredTokens } from './store/token-store.ts';

export type BlockedRefresh = ReturnType<typeof createBlockedRefresh>;

interface Parts {
  clock: Clock;
  log: Logger;
  onExchange?: (outcome: 'unsent', seconds: number) => void;
}

/**
 * Whether a refresh is due and cannot begin: the store cannot be read or written, a rescue file that may hold the next
 * pair cannot be read, or another process keeps the claim. The access token still works meanwhile, so without this
 * report callers would be the first to notice.
 */
export function createBlockedRefresh({ clock, log, onExchange }: Parts) {
  let by: Blocker | undefined;
  /** The claim of another process, or only its lock, and when it was first seen. */
  let busy: { with: string; since: number } | undefined;

  return {
    get is() {
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
      // It may have been stopped before its claim was committed.
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
    if (by !== undefined) return;
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
