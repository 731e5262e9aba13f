import { execFileSync, spawnSync } from 'node:child_process';
import type { Program } from '../processes/process.ts';

/** `prlimit` is part of util-linux, which every Linux has. */
export const canFillDisk = spawnSync('prlimit', ['--version']).status === 0;

/**
 * A disk that is full, for this process alone: none of its files can grow beyond this size. (Node ignores the signal
 * that the kernel sends, so that writing fails as on a full disk.) Pipes have no limit.
 */
export function fillDisk({ pid }: Program, bytes: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}

export function freeDisk({ pid }: Program): void {
  execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:unlimited']);
}
