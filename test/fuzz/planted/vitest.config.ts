import { defineConfig } from 'vitest/config';

/** Tests that are not part of the suite, for the test of `npm run fuzz`. */
export default defineConfig({
  test: {
    include: ['test/fuzz/planted/*s.ts'],
    setupFiles: ['test/support/random/random-runs.ts'],
    maxWorkers: 1,
  },
});
