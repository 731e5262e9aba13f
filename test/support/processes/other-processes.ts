import { readdirSync, readFileSync } from 'node:fs';

/** The child processes of all threads of a process. */
export function childrenOf(parent: number): number[] {
  const tasks = `/proc/${parent}/task`;
  return readdirSync(tasks).flatMap((task) =>
    readFileSync(`${tasks}/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
}

export function isAlive(pid: number): boolean {
  try {
    // A process that has ended is listed until its parent has read its exit code.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
