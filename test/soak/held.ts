import { readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What a process holds after a garbage collection. */
export interface Held {
  readonly heap: number;
  readonly rss: number;
  readonly sockets: number;
  readonly files: number;
  readonly timers: number;
  /** How long its main thread ran, and how long it could have run but had no CPU, ms since the start. */
  readonly cpu: { readonly ran: number; readonly waited: number };
  /** All warnings of Node since the start: it warns of too many listeners. */
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
    cpu: cpuOfMainThread(),
    warnings,
  };
}

function cpuOfMainThread(): Held['cpu'] {
  const [ran = 0, waited = 0] = readFileSync('/proc/self/schedstat', 'utf8').split(' ').map(Number);
  return { ran: ran / 1e6, waited: waited / 1e6 };
}
