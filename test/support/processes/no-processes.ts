import { ChildProcess } from 'node:child_process';
import { expect } from 'vitest';

// Whatever starts a process ends here: spawn, fork and exec.
(ChildProcess.prototype as { spawn?: unknown }).spawn = () => {
  throw new Error(
    `${expect.getState().testPath} starts a process, but its imports do not show it. ` +
      'Start it with test/support/processes/process.ts, so that it runs among the files that start processes.',
  );
};
