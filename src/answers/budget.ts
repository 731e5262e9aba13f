import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';

/** Limits the bytes that all answers together hold in memory, from when they are read until they are sent. */
export interface AnswerBudget {
  open(): HeldBytes;
  /** For metrics. */
  readonly load: { readonly bytes: number; readonly waiting: number };
}

/** The bytes that one operation holds. */
export interface HeldBytes {
  /**
   * Holds a piece until `release`. A piece that several operations share is counted once. Returns a promise if the
   * operation has to wait until others release theirs: 30 s at most, for all its pieces together.
   *
   * @throws OPERATION_TOO_COMPLEX, RATE_LIMITED
   */
  hold(piece: object, bytes: number): Promise<void> | undefined;
  /**
   * Does the same where nobody can wait.
   *
   * @throws OPERATION_TOO_COMPLEX, RATE_LIMITED
   */
  holdAtOnce(piece: object, bytes: number): void;
  /**
   * Announces the least size of a part of the answer, before anything is fetched.
   *
   * @throws OPERATION_TOO_COMPLEX
   */
  expect(bytes: number): void;
  release(): void;
}

/** The same as for requests to the service that wait for their turn. */
const PATIENCE_MS = 30_000;
const RETRY_SECONDS = 5;

/**
 * Pieces that wait are in memory as well, so at most `max` bytes may wait; more are refused at once.
 *
 * @param max bytes
 */
export function createAnswerBudget(max: number, clock: Clock): AnswerBudget {
  const pieces = new Map<object, { readonly bytes: number; holders: number }>();
  /** Operations that hold something. */
  const holding = new Set<object>();
  /** In the order of their arrival. */
  const waiting = new Set<Waiter>();
  const waitingPieces = createCounts();
  const waitingOperations = createCounts();
  let used = 0;
  let waitingBytes = 0;

  return {
    open,
    get load() {
      return { bytes: used, waiting: waiting.size };
    },
  };

  function open(): HeldBytes {
    const own = new Set<object>();
    let ownBytes = 0;
    const patience = createPatience(clock);
    let expected = 0;
    let isReleased = false;

    const take = (piece: object, bytes: number) => {
      // After `release` nobody reads the piece; and an operation may have waited for one piece at two places.
      if (isReleased || own.has(piece)) return;
      own.add(piece);
      ownBytes += bytes;
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
        if (ownBytes + bytes > max) throw tooLarge(ownBytes + bytes, max);
        if (!fits(piece, bytes) || (waiting.size > 0 && !holding.has(own) && !pieces.has(piece))) {
          return wait({ own, piece, bytes, patience, take: () => take(piece, bytes) });
        }
        take(piece, bytes);
        return undefined;
      },
      holdAtOnce: (piece, bytes) => {
        if (isReleased) return;
        if (ownBytes + bytes > max) throw tooLarge(ownBytes + bytes, max);
        if (!fits(piece, bytes)) throw usedUp(max);
        take(piece, bytes);
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

  function fits(piece: object, bytes: number): boolean {
    return pieces.has(piece) || used + bytes <= max;
  }

  function letGo(piece: object): void {
    const shared = pieces.get(piece);
    if (!shared) return;
    shared.holders -= 1;
    if (shared.holders > 0) return;
    pieces.delete(piece);
    used -= shared.bytes;
  }

  function wait({ own, piece, bytes, patience, take }: Wanted): Promise<void> {
    const added = waitingPieces.has(piece) ? 0 : bytes;
    if (waitingBytes + added > max || isStuck(own)) throw usedUp(max);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const over = new AbortController();
    const end = (settle: () => void) => {
      if (!waiting.delete(waiter)) return;
      if (waitingPieces.remove(piece)) waitingBytes -= bytes;
      waitingOperations.remove(own);
      patience.end();
      over.abort();
      settle();
    };
    const waiter: Waiter = {
      own,
      piece,
      bytes,
      leave: () => end(resolve),
      go: () => {
        take();
        end(resolve);
      },
      refuse: () => end(() => reject(usedUp(max))),
    };
    waiting.add(waiter);
    waitingBytes += added;
    waitingPieces.add(piece);
    waitingOperations.add(own);
    const lost = () => {
      waiter.refuse();
      serve();
    };
    clock.sleep(patience.begin(), over.signal).then(lost, () => {});
    return promise;
  }

  /** Whether every operation that holds something waits for another one: a deadlock. */
  function isStuck(newcomer?: object): boolean {
    if (holding.size === 0) return false;
    for (const one of holding) if (one !== newcomer && !waitingOperations.has(one)) return false;
    return true;
  }

  /** Serves operations that hold something first: the sooner they end, the sooner they release everything. */
  function serve(): void {
    let before: number;
    do {
      before = waiting.size;
      for (const one of waiting) if (holding.has(one.own) && fits(one.piece, one.bytes)) one.go();
      for (const one of waiting) {
        if (holding.has(one.own)) continue;
        if (!fits(one.piece, one.bytes)) break;
        one.go();
      }
    } while (waiting.size < before);
    if (!isStuck()) return;
    const last = Array.from(waiting).findLast((one) => holding.has(one.own));
    for (const one of waiting) if (one.own === last?.own) one.refuse();
  }
}

interface Wanted {
  readonly own: object;
  readonly piece: object;
  readonly bytes: number;
  readonly patience: Patience;
  take(): void;
}

/** How long one operation may still wait. Waits for several pieces at the same time count once. */
interface Patience {
  /** Begins a wait. Returns how long it may last, ms. */
  begin(): number;
  end(): void;
}

function createPatience(clock: Clock): Patience {
  let left = PATIENCE_MS;
  let waits = 0;
  let since = 0;
  return {
    begin: () => {
      const now = clock.elapsed();
      if (waits === 0) since = now;
      waits += 1;
      return Math.max(0, left - (now - since));
    },
    end: () => {
      waits -= 1;
      if (waits === 0) left -= clock.elapsed() - since;
    },
  };
}

interface Waiter extends Omit<Wanted, 'take' | 'patience'> {
  leave(): void;
  go(): void;
  refuse(): void;
}

function createCounts() {
  const counts = new Map<object, number>();
  return {
    has: (one: object) => counts.has(one),
    add: (one: object) => void counts.set(one, (counts.get(one) ?? 0) + 1),
    /** @returns whether it was the last */
    remove: (one: object): boolean => {
      const left = (counts.get(one) ?? 0) - 1;
      if (left > 0) counts.set(one, left);
      else counts.delete(one);
      return left <= 0;
    },
  };
}

function tooLarge(bytes: number, max: number) {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The answer would have ${megabytes(bytes)} MB or more, but the answers to all callers together may have ${megabytes(max)} MB. ` +
      'Request fewer records or fields, use shorter aliases, or stream the list; the operator can raise ANSWER_BYTES.',
  );
}

function usedUp(max: number) {
  return codedError(
    'RATE_LIMITED',
    `The answers that are being read and sent use all of the ${megabytes(max)} MB available. Try again in ${RETRY_SECONDS} s, ` +
      'stream the list, or ask the operator to raise ANSWER_BYTES.',
    { extensions: { retryAfter: RETRY_SECONDS } },
  );
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 1024 / 1024);
}
