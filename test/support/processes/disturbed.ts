/**
 * Loaded before the gateway and its workers. On SIGUSR2 the clock of the process goes faster, and on the next one as
 * before. SIGWINCH blocks its event loop for ever.
 */
import process from 'node:process';
import { systemClock } from '../../../src/clock.ts';

const FACTOR = Number(process.env['CLOCK_FACTOR'] ?? 10);
const { elapsed, sleep } = systemClock;
let factor = 1;
let [at, from] = [elapsed(), elapsed()];

Object.assign(systemClock, {
  elapsed: () => at + (elapsed() - from) * factor,
  sleep: (ms: number, signal?: AbortSignal) => sleep(ms / factor, signal),
});
process.on('SIGUSR2', () => {
  [at, from] = [systemClock.elapsed(), elapsed()];
  factor = factor === 1 ? FACTOR : 1;
});
process.on('SIGWINCH', () => {
  for (;;);
});
