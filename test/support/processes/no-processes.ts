import { ChildProcess } from 'node:child_process';
import { expect } from 'vitest';

// Whatever starts a process ends here: spawn, fork and exec.
(ChildProcess.prototype as { spawn?: unknown }).spawn = () => {
  throw new Error(
    `${expect.getState().testPath} starts a process, but its name does not end with ` +
      '`.processes.test.ts`, so that it does not run among the files that start processes.',
  );
};
