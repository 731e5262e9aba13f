/**
 * Replaces `node:timers/promises` (hooks.ts): everything that runs in promises has run by then, as after a turn of the
 * event loop, which costs much more.
 */
import { nextTick } from 'node:process';

export * from 'node:timers/promises';

export function setImmediate(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve));
}
