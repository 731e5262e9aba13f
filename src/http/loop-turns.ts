import process from 'node:process';
import type { Clock } from '../clock.ts';

/**
 * How long one turn of the event loop begins new operations, ms. A probe waits for two turns or so, and is then answered
 * in time behind a flood of operations, each of which may take several milliseconds until it is refused or sent.
 */
const TURN_MS = 10;

/** Called before an operation begins: undefined if it may begin at once, else a promise of its turn. */
export type TakeTurn = () => Promise<void> | undefined;

/** Spreads the beginnings of operations over turns of the event loop, in the order of their arrival. */
export function createLoopTurns(clock: Pick<Clock, 'elapsed'>): TakeTurn {
  const waiting: (() => void)[] = [];
  /** When the first operation of this turn began; undefined before. */
  let began: number | undefined;

  const endTurn = () => {
    began = undefined;
    if (waiting.length > 0) beginNext();
  };
  const hasTime = (): boolean => {
    if (began !== undefined) return clock.elapsed() - began < TURN_MS;
    began = clock.elapsed();
    setImmediate(endTurn);
    return true;
  };
  const beginNext = () => {
    if (waiting.length === 0 || !hasTime()) return;
    waiting.shift()!();
    // Behind everything that this operation does at once, whose time counts: ticks run when no microtask is left.
    queueMicrotask(() => process.nextTick(beginNext));
  };
  return () => {
    if (waiting.length === 0 && hasTime()) return undefined;
    return new Promise((resolve) => waiting.push(resolve));
  };
}
