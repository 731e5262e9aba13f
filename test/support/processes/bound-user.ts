import process from 'node:process';

/** A user who is bound by file permissions: `nobody` if root runs the tests. */
export const BOUND = process.getuid?.() === 0 ? 65_534 : process.getuid!();
