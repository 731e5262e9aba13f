import { execFileSync, spawnSync } from 'node:child_process';
import type { Program } from '../processes/process.ts';

/** `prlimit` is part of util-linux, which every Linux has. */
export const canFillDisk = spawnSync('prlimit', ['--version']).status === 0;

/**
 * A disk that is full, for this process alone: no file of it can grow beyond so many bytes. (Node ignores the
 * signal that comes with it, so that writing fails as it does on a full disk.) Pipes have no limit.
 */
export function fillDisk({ pid }: Program, bytes: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}

export function freeDisk({ pid }: Program): void {
  execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:unlimited']);
}
