import process from 'node:process';

/** Whether tests of replicas, damages and failing system calls run at full length, which takes minutes. */
export const IS_FULL = process.env['TESTS'] === 'full';
