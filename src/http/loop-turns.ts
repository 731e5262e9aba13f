import process from 'node:process';
import type { Clock } from '../clock.ts';

/**
 * The time in a turn of the event loop in which new operations may begin, ms. So a probe is answered in time during a
 * flood of operations, each of which may take several milliseconds until it is refused or sent.
 */
const TURN_MS = 10;

/** The most turns that an operation gives to others. After a stop of the whole process, its time says nothing. */
const MOST_TURNS = 50;

/** Call it before an operation begins. Returns undefined if the operation may begin at once, otherwise its turn. */
type TakeTurn = () => Promise<void> | undefined;

/** Spreads the beginnings of operations over turns of the event loop, in the order of their arrival. */
export function createLoopTurns(clock: Pick<Clock, 'elapsed'>): TakeTurn {
  const waiting: (() => void)[] = [];
  /** When the first operation of this turn began; undefined before. */
  let began: number | undefined;

  const endTurn = () => {
    const turns = Math.floor((clock.elapsed() - began!) / TURN_MS);
    pause(Math.min(turns, MOST_TURNS));
  };
  // One that took longer than its time gives the next turns to others: a probe needs several until it is answered.
  const pause = (turns: number): void => {
    if (turns > 0) return void setImmediate(pause, turns - 1);
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
    // After everything that this operation does at once, whose time counts: ticks run when no microtask is left.
    queueMicrotask(() => process.nextTick(beginNext));
  };
  return () => {
    if (waiting.length === 0 && hasTime()) return undefined;
    return new Promise((resolve) => waiting.push(resolve));
  };
}
