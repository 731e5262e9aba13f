import { readdirSync } from 'node:fs';
import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What a process holds, once the garbage is collected. */
export interface Held {
  readonly heap: number;
  readonly rss: number;
  readonly sockets: number;
  readonly files: number;
  readonly timers: number;
  /** All that Node warned of since the start: too many listeners are said so. */
  readonly warnings: readonly string[];
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const warnings: string[] = [];
process.on('warning', ({ name, message }) => warnings.push(`${name}: ${message}`));

export function lookAtHeld(): Held {
  collect();
  collect();
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  return {
    heap: heapUsed + arrayBuffers,
    rss,
    sockets: resources.filter((name) => name.startsWith('TCPSocket')).length,
    files: readdirSync('/proc/self/fd').length,
    timers: resources.filter((name) => name === 'Timeout').length,
    warnings,
  };
}
