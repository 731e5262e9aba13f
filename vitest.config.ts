import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Vitest would give our files another build of graphql than Node gives the libraries, and two copies of graphql
  // refuse each other's schemas.
  resolve: {
    alias: [{ find: /^graphql$/, replacement: fileURLToPath(import.meta.resolve('graphql')) }],
  },
  test: {
    include: ['test/**/*.test.ts'],
    // One more than there are cores: a quarter of the time a worker waits for disks, processes and clocks.
    maxWorkers: availableParallelism() + 1,
    // To load the libraries for each file anew was a fifth of the work.
    isolate: false,
    setupFiles: ['test/support/processes/fresh-modules.ts', 'test/support/random/random-runs.ts'],
    // Only for what hangs: on a machine with much else to do a test of many processes takes its time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
