import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { Queue } from '../queue.ts';

export type AnswerBudget = ReturnType<typeof createAnswerBudget>;
/** The bytes that one operation holds. */
export type HeldBytes = ReturnType<AnswerBudget['open']>;

/** As long as upstream requests wait for a turn. */
const PATIENCE_MS = 30_000;
const RETRY_SECONDS = 5;

/** A value in memory that operations may share. */
interface Piece {
  readonly bytes: number;
  holders: number;
  waiters: number;
}

/** A piece that an operation waits for. */
interface WaitingPiece {
  readonly held: ReadonlySet<object>;
  readonly piece: object;
  readonly bytes: number;
  take(): void;
}

/**
 * Limits the bytes that all answers together hold in memory, from when they are read until they are sent. Waiting
 * pieces are in memory as well, so at most `max` bytes may wait; more are refused at once.
 *
 * @param max bytes
 */
export function createAnswerBudget(max: number, clock: Clock) {
  const pieces = new Map<object, Piece>();
  /** The pieces of each operation that holds any. */
  const holding = new Set<ReadonlySet<object>>();
  const queue = new Queue<WaitingPiece>({ clock, tooLate: () => usedUp(max), onLate: serve });
  let used = 0;
  let waitingBytes = 0;

  return {
    open,
    /** For metrics. */
    get load() {
      return { bytes: used, waiting: queue.size };
    },
  };

  function open() {
    const held = new Set<object>();
    let heldBytes = 0;
    let expected = 0;
    let isReleased = false;
    /** How much longer the operation may wait, ms. */
    let patience = PATIENCE_MS;
    let waitsSince = 0;

    const take = (piece: object, bytes: number) => {
      // After `release` the piece is not read any more. An operation may have waited for the same piece twice.
      if (isReleased || held.has(piece)) return;
      held.add(piece);
      heldBytes += bytes;
      holding.add(held);
      const shared = pieceOf(piece, bytes);
      shared.holders += 1;
      if (shared.holders === 1) used += shared.bytes;
    };

    const wait = (piece: object, bytes: number) => {
      const shared = pieceOf(piece, bytes);
      const added = shared.waiters === 0 ? shared.bytes : 0;
      if (waitingBytes + added > max || isDeadlocked(held)) {
        forget(piece, shared);
        throw usedUp(max);
      }
      waitingBytes += added;
      shared.waiters += 1;
      // Simultaneous waits of one operation count once.
      if (!queue.has(held)) waitsSince = clock.elapsed();
      const until = waitsSince + patience;
      return queue.wait(
        { held, piece, bytes, take: () => take(piece, bytes) },
        {
          owner: held,
          until: () => until,
          onEnd: () => {
            shared.waiters -= 1;
            if (shared.waiters === 0) waitingBytes -= shared.bytes;
            forget(piece, shared);
            if (!queue.has(held)) patience -= clock.elapsed() - waitsSince;
          },
        },
      );
    };

    return {
      /**
       * Holds a piece until `release`. A piece that several operations share is counted once. Returns a promise if the
       * operation has to wait until others release theirs: 30 s at most, for all its pieces together.
       *
       * @throws OPERATION_TOO_COMPLEX, RATE_LIMITED
       */
      hold: (piece: object, bytes: number): Promise<void> | undefined => {
        if (isReleased || held.has(piece)) return undefined;
        if (heldBytes + bytes > max) throw tooLarge(heldBytes + bytes, max);
        const isBehindOthers = queue.size > 0 && !holding.has(held) && !isHeld(piece);
        if (isBehindOthers || !fits(piece, bytes)) return wait(piece, bytes);
        take(piece, bytes);
        return undefined;
      },
      /**
       * Holds a piece like `hold`, but never waits.
       *
       * @throws OPERATION_TOO_COMPLEX, RATE_LIMITED
       */
      holdAtOnce: (piece: object, bytes: number): void => {
        if (isReleased) return;
        if (heldBytes + bytes > max) throw tooLarge(heldBytes + bytes, max);
        if (!fits(piece, bytes)) throw usedUp(max);
        take(piece, bytes);
      },
      /**
       * Adds the minimum size of a part of the answer, before anything is fetched.
       *
       * @throws OPERATION_TOO_COMPLEX
       */
      expect: (bytes: number): void => {
        expected += bytes;
        if (expected > max) throw tooLarge(expected, max);
      },
      release: (): void => {
        if (isReleased) return;
        isReleased = true;
        holding.delete(held);
        for (const piece of held) releasePiece(piece);
        held.clear();
        for (const next of waitingOf(held)) next.begin();
        serve();
      },
    };
  }

  function pieceOf(piece: object, bytes: number): Piece {
    const known = pieces.get(piece) ?? { bytes, holders: 0, waiters: 0 };
    pieces.set(piece, known);
    return known;
  }

  function forget(piece: object, { holders, waiters }: Piece): void {
    if (holders === 0 && waiters === 0) pieces.delete(piece);
  }

  function isHeld(piece: object): boolean {
    return (pieces.get(piece)?.holders ?? 0) > 0;
  }

  function fits(piece: object, bytes: number): boolean {
    return used + bytes <= max || isHeld(piece);
  }

  function releasePiece(piece: object): void {
    const shared = pieces.get(piece)!;
    shared.holders -= 1;
    if (shared.holders === 0) used -= shared.bytes;
    forget(piece, shared);
  }

  function waitingOf(held: ReadonlySet<object>) {
    return queue.has(held) ? Array.from(queue).filter(({ entry }) => entry.held === held) : [];
  }

  /** Whether every operation that holds something waits for another. */
  function isDeadlocked(newcomer?: object): boolean {
    if (holding.size === 0) return false;
    for (const held of holding) if (held !== newcomer && !queue.has(held)) return false;
    return true;
  }

  /** Serves operations that hold something first: the sooner they end, the sooner they release everything. */
  function serve(): void {
    let before: number;
    do {
      before = queue.size;
      for (const { entry, begin } of queue) {
        if (!holding.has(entry.held) || !fits(entry.piece, entry.bytes)) continue;
        entry.take();
        begin();
      }
      for (const { entry, begin } of queue) {
        if (holding.has(entry.held)) continue;
        if (!fits(entry.piece, entry.bytes)) break;
        entry.take();
        begin();
      }
    } while (queue.size < before);
    if (!isDeadlocked()) return;
    const last = Array.from(queue).findLast(({ entry }) => holding.has(entry.held));
    if (last) for (const { refuse } of waitingOf(last.entry.held)) refuse(usedUp(max));
  }
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
