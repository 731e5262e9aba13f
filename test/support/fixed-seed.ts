import fc from 'fast-check';

// The suite gives the same result every time; with RANDOM_RUNS there are new values in each run.
if (process.env['RANDOM_RUNS'] === undefined) fc.configureGlobal({ seed: 71 });
