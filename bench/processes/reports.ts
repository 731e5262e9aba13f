import { monitorEventLoopDelay } from 'node:perf_hooks';
import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Report {
  /** Bytes in use, once the garbage is collected. */
  readonly inUse: number;
  /** Milliseconds for which nothing else could run, at most, since the last report. */
  readonly longestBlock: number;
}

const RESOLUTION_MS = 1;

// Loaded into a gateway with --import: neither can be seen from outside.
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();

process.on('message', () => {
  const longestBlock = Math.max(0, delay.max / 1e6 - RESOLUTION_MS);
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  process.send!({ inUse: heapUsed + arrayBuffers, longestBlock } satisfies Report);
  // Only when the pause for this collection is over.
  setTimeout(() => delay.reset(), 10);
});
