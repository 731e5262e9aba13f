import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { Skipped } from './report.ts';

/** Limits the CPU of processes, each in a control group of its own, until it is disposed of. */
export interface CpuShares extends Disposable {
  /** `share` is a part of one core: 0.2 is a fifth. All threads of the process share it. */
  limit(pid: number, share: number): void;
}

/**
 * The CPU controller of Linux, in one of the two versions of control groups. With a burst, a process that did not get
 * its whole quota in a period, because all cores were taken, gets the rest in the next one.
 */
interface Controller {
  readonly folder: string;
  /** The files of a group and their contents, in the order of writing. Microseconds. */
  readonly limits: (quota: number, period: number) => readonly (readonly [string, string])[];
}

const V1: Controller = {
  folder: '/sys/fs/cgroup/cpu',
  limits: (quota, period) => [
    ['cpu.cfs_period_us', `${period}`],
    ['cpu.cfs_quota_us', `${quota}`],
    ['cpu.cfs_burst_us', `${quota}`],
  ],
};
const V2: Controller = {
  folder: '/sys/fs/cgroup',
  limits: (quota, period) => [
    ['cpu.max', `${quota} ${period}`],
    ['cpu.max.burst', `${quota}`],
  ],
};

/** A process that has used its part of a period waits for the next one: a short period keeps this wait short. */
const PERIOD_US = 20_000;
const REMOVAL_MS = 2_000;

/** @throws Skipped where control groups cannot be created, or cannot limit CPU */
export function openCpuShares(): CpuShares {
  const { folder, limits } = existsSync(V1.folder) ? V1 : V2;
  const groups: string[] = [];
  const create = (share: number): string => {
    const group = join(folder, `recruiting-bench-${process.pid}-${groups.length}`);
    mkdirSync(group);
    groups.push(group);
    for (const [file, value] of limits(Math.round(share * PERIOD_US), PERIOD_US)) {
      // Without this flag, a missing file is reported as a missing permission.
      writeFileSync(join(group, file), value, { flag: 'r+' });
    }
    return group;
  };
  const removeAll = () => {
    process.off('exit', removeAll);
    for (const group of groups.splice(0)) remove(group, folder);
  };
  // A signal ends the benchmark without disposing of anything.
  process.on('exit', removeAll);
  try {
    create(1);
  } catch (error) {
    removeAll();
    throw new Skipped(
      `It needs Linux, and permission to limit CPU with control groups (${(error as Error).message}). ` +
        'Run it as root, on a machine of its own or in a privileged container.',
    );
  }
  return {
    limit: (pid, share) => writeFileSync(join(create(share), 'cgroup.procs'), `${pid}`),
    [Symbol.dispose]: removeAll,
  };
}

/** Only a group without processes can be removed. */
function remove(group: string, parent: string): void {
  const deadline = performance.now() + REMOVAL_MS;
  for (;;) {
    for (const pid of readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n')) {
      if (pid !== '') release(pid, parent);
    }
    try {
      rmdirSync(group);
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      // Waits without promises, because nothing else runs while the process exits.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

function release(pid: string, parent: string): void {
  try {
    writeFileSync(join(parent, 'cgroup.procs'), pid);
  } catch {
    // The process has ended, or is ending.
  }
}
