import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { blockedBy, busyElsewhereError, type Blocker } from './token-errors.ts';
import type { StoredTokens } from './store/token-store.ts';

/**
 * Whether a rotation is due and cannot begin: because the store cannot be read or written, because a rescue file may
 * hold the next pair and cannot be read, or because another process took the right to rotate and does not finish.
 * The access token serves meanwhile, so that nobody else would notice before it has expired.
 */
export interface BlockedRotation {
  readonly is: boolean;
  /** A rotation that was due came to nothing. @param generation that was to be rotated */
  failed(error: unknown, generation: number | undefined): void;
  /** One could begin, or there is a new pair. */
  began(): void;
  /** What was read of the store: tells how long another process has been rotating. */
  saw(stored: StoredTokens): void;
}

/** Longer than any exchange takes: what remains is a process that was stopped or hangs. */
export const LONGEST_EXCHANGE_MS = 150_000;

interface BlockedParts {
  clock: Clock;
  log: Logger;
  onExchange?: (outcome: 'unsent', seconds: number) => void;
}

export function createBlockedRotation({ clock, log, onExchange }: BlockedParts): BlockedRotation {
  let by: Blocker | undefined;
  /** The mark of another process, or its lock alone, and when it was seen first. */
  let busy: { with: string; since: number } | undefined;

  return {
    get is() {
      return by !== undefined;
    },
    failed: (error, generation) => {
      const blocker = blockedBy(error);
      if (blocker === undefined) return;
      // It may have been stopped before its mark was committed.
      if (blocker === 'another process') return isBusy(LOCK, generation);
      onExchange?.('unsent', 0);
      block(blocker, error as Error, generation);
    },
    began: end,
    saw: ({ mark, generation }) => {
      if (mark?.live === true) isBusy(mark.attempt, generation);
      else if (busy && busy.with !== LOCK) end();
    },
  };

  function isBusy(attempt: string, generation: number | undefined): void {
    if (busy?.with !== attempt) busy = { with: attempt, since: clock.elapsed() };
    if (clock.elapsed() - busy.since <= LONGEST_EXCHANGE_MS) return;
    block('another process', busyElsewhereError(), generation);
  }

  function block(blocker: Blocker, error: Error, generation: number | undefined): void {
    if (by !== undefined) return;
    by = blocker;
    log.error(
      { trouble: 'blocked', generation, err: error.cause },
      `A rotation is due, and cannot begin. ${error.message} The access token serves until it expires.`,
    );
  }

  function end(): void {
    busy = undefined;
    if (by === undefined) return;
    by = undefined;
    log.info('rotations can begin again');
  }
}

const LOCK = 'the lock';
