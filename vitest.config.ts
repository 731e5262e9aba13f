import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Takes more than two seconds, by CPU or by waiting, in `npm run test:fast`. */
const LONG = 'test/**/*.long.test.ts';
/** Starts other processes. */
const PROCESSES = 'test/**/{*.,}processes.test.ts';
/** Takes minutes. */
const NIGHTLY = 'test/**/*.nightly.test.ts';

export default defineConfig({
  // Vitest would give our files another build of graphql than Node gives the libraries, and two copies of graphql
  // refuse each other's schemas.
  resolve: {
    alias: [
      { find: /^graphql$/, replacement: fileURLToPath(import.meta.resolve('graphql')) },
      // As Node finds it once the package is packed.
      { find: /^recruiting-subgraph$/, replacement: resolve('src/library/index.ts') },
      {
        find: /^recruiting-subgraph\/tokens$/,
        replacement: resolve('src/library/token-keeper.ts'),
      },
    ],
  },
  test: {
    // A worker loads the libraries and the program once, by Node itself, and not for each file: that, and compiling
    // them again and again, was a third of the work. Only the modules of `test` are loaded for each file, without the
    // one that keeps served schemas.
    isolate: false,
    server: {
      deps: {
        external: [
          new RegExp(`^(${resolve('src')}|${resolve('sandbox')})/`),
          new RegExp(`^${resolve('test/support/gateway/served-once.ts')}$`),
        ],
      },
    },
    // As small as it is by default, the young generation of a worker is collected again and again.
    execArgv: ['--max-semi-space-size=64', '--min-semi-space-size=16'],
    setupFiles: ['test/support/processes/fresh-modules.ts', 'test/support/random/random-runs.ts'],
    // The title of a row in a table is a sentence, which would be cut after 40 characters.
    taskTitleValueFormatTruncate: 200,
    // Only for what hangs: on a machine with much else to do a test of many processes takes its time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // One after the other: what is sensitive to time in one process must not compete with browsers and databases.
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: [LONG, PROCESSES, NIGHTLY],
          setupFiles: ['test/support/processes/no-processes.ts'],
          sequence: { groupOrder: 1 },
          // One more than there are cores: some tests wait for timeouts.
          maxWorkers: availableParallelism() + 1,
        },
      },
      {
        extends: true,
        test: {
          name: 'long',
          include: [LONG],
          setupFiles: ['test/support/processes/no-processes.ts'],
          sequence: { groupOrder: 1 },
          // One more than there are cores: some tests wait for timeouts.
          maxWorkers: availableParallelism() + 1,
        },
      },
      {
        extends: true,
        test: {
          name: 'processes',
          include: [PROCESSES],
          sequence: { groupOrder: 2 },
          // More than there are cores: a worker often waits for disks, processes and clocks.
          maxWorkers: availableParallelism() + 3,
        },
      },
      {
        extends: true,
        test: {
          // `npm run test:nightly` runs it, and `npm test` leaves it out.
          name: 'nightly',
          include: [NIGHTLY],
          sequence: { groupOrder: 3 },
          // The soak measures time and memory.
          maxWorkers: 1,
        },
      },
    ],
  },
});
