import { nextTick } from 'node:process';

/** Everything that runs in promises has run by then, as after a turn of the event loop, which costs much more. */
export function setImmediate(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve));
}
