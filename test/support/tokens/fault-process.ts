import { readFileSync } from 'node:fs';
import type { Program } from '../processes/process.ts';

/** Returns what every user of the machine can read of its command line. */
export function titleOf({ pid }: Program): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
}

/** Resolves when the process has stopped running: a signal only requests that. */
export async function standsStill({ pid }: Pick<Program, 'pid'>): Promise<void> {
  while (!/^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) {
    await new Promise((turn) => setImmediate(turn));
  }
}
