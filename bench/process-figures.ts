import { readFileSync, writeFileSync } from 'node:fs';

// Only Linux reports these figures of another process.

/** Seconds of CPU so far, in steps of 10 ms. */
export function cpuOf(pid: number): number {
  // The name comes first. It may contain spaces, and ends with a parenthesis.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Bytes. */
export function residentOf(pid: number): number {
  return kilobytes(pid, 'VmRSS') * 1_024;
}

/** Bytes: the highest value since `watchPeak`. */
export function peakOf(pid: number): number {
  return kilobytes(pid, 'VmHWM') * 1_024;
}

/** Starts a new peak from the memory that is resident now. */
export function watchPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

function kilobytes(pid: number, name: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]);
}
