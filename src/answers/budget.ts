import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';

/** The bytes that the answers of all operations together may hold, from when they are read until they are sent. */
export interface AnswerBudget {
  open(): HeldBytes;
  /** For metrics. */
  readonly load: { readonly bytes: number; readonly waiting: number };
}

/** What one operation holds. */
export interface HeldBytes {
  /**
   * Holds a piece until `release`. One that several operations share is counted once. Returns a promise where the
   * operation has to wait until others have let go of theirs.
   *
   * @throws OPERATION_TOO_COMPLEX, RATE_LIMITED
   */
  hold(piece: object, bytes: number): Promise<void> | undefined;
  /** Before anything is fetched, for an answer that will have so many bytes at least. @throws OPERATION_TOO_COMPLEX */
  expect(bytes: number): void;
  release(): void;
}

/** As long as requests to the service wait for their turn. */
const PATIENCE_MS = 30_000;
const RETRY_SECONDS = 5;

/** @param max bytes */
export function createAnswerBudget(max: number, clock: Clock): AnswerBudget {
  const pieces = new Map<object, { readonly bytes: number; holders: number }>();
  /** Operations that hold something. */
  const holding = new Set<object>();
  /** In the order in which they came. */
  const waiting = new Set<Waiter>();
  let used = 0;

  return {
    open,
    get load() {
      return { bytes: used, waiting: waiting.size };
    },
  };

  function open(): HeldBytes {
    const own = new Set<object>();
    let expected = 0;
    let isReleased = false;

    const take = (piece: object, bytes: number) => {
      // What comes after the end is read by nobody.
      if (isReleased) return;
      own.add(piece);
      holding.add(own);
      const shared = pieces.get(piece);
      if (shared) {
        shared.holders += 1;
        return;
      }
      pieces.set(piece, { bytes, holders: 1 });
      used += bytes;
    };

    return {
      hold: (piece, bytes) => {
        if (isReleased || own.has(piece)) return undefined;
        if (bytes > max) throw tooLarge(bytes, max);
        const hasRoom =
          pieces.has(piece) || (used + bytes <= max && (waiting.size === 0 || holding.has(own)));
        if (!hasRoom) return wait(own, bytes, () => take(piece, bytes));
        take(piece, bytes);
        return undefined;
      },
      expect: (bytes) => {
        expected += bytes;
        if (expected > max) throw tooLarge(expected, max);
      },
      release: () => {
        if (isReleased) return;
        isReleased = true;
        holding.delete(own);
        for (const piece of own) letGo(piece);
        own.clear();
        for (const one of waiting) if (one.own === own) one.leave();
        serve();
      },
    };
  }

  function letGo(piece: object): void {
    const shared = pieces.get(piece);
    if (!shared) return;
    shared.holders -= 1;
    if (shared.holders > 0) return;
    pieces.delete(piece);
    used -= shared.bytes;
  }

  function wait(own: object, bytes: number, take: () => void): Promise<void> {
    // Where everybody who holds something waits for the others, nobody would ever let go.
    const holders = new Set(
      Array.from(waiting, (one) => one.own).filter((one) => holding.has(one)),
    );
    if (holding.has(own)) holders.add(own);
    if (holding.size > 0 && holders.size === holding.size) throw usedUp(max);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const over = new AbortController();
    const waiter: Waiter = {
      own,
      bytes,
      leave: () => {
        waiting.delete(waiter);
        over.abort();
        resolve();
      },
      go: () => {
        waiter.leave();
        take();
      },
    };
    waiting.add(waiter);
    const giveUp = async () => {
      await clock.sleep(PATIENCE_MS, over.signal);
      waiting.delete(waiter);
      reject(usedUp(max));
    };
    // It is woken when its turn has come.
    giveUp().catch(() => {});
    return promise;
  }

  function serve(): void {
    for (const one of waiting) {
      if (used + one.bytes > max) return;
      one.go();
    }
  }
}

interface Waiter {
  readonly own: object;
  readonly bytes: number;
  leave(): void;
  go(): void;
}

function tooLarge(bytes: number, max: number) {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The answer would have ${megabytes(bytes)} MB or more, and ${megabytes(max)} MB is the most that is held for all callers together. ` +
      'Ask for fewer records or fields, use shorter aliases, or stream the list; the operator can raise ANSWER_BYTES.',
  );
}

function usedUp(max: number) {
  return codedError(
    'RATE_LIMITED',
    `The answers that are being read and sent use up the ${megabytes(max)} MB that there are for them. Try again in ${RETRY_SECONDS} s, ` +
      'stream the list, or have the operator raise ANSWER_BYTES.',
    { extensions: { retryAfter: RETRY_SECONDS } },
  );
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 1024 / 1024);
}
