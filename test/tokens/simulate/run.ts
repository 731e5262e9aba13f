/**
 * Runs histories of replicas that share one token set, from one seed after the other, and checks each of them. A history
 * that breaks a promise is made as short as possible, and printed with the command that replays it; the exit code is 1
 * then. With `--seeds 1` the history itself is printed.
 *
 *   npm run simulate [-- --seeds 2000] [--seed 1]
 */
import { randomInt } from 'node:crypto';
import process from 'node:process';
import { readNumber, readOptions } from '../../support/processes/arguments.ts';
import { firstFailure, historyFrom } from './check.ts';

const { values } = readOptions({
  options: { seeds: { type: 'string', default: '2000' }, seed: { type: 'string' } },
});
const seeds = readNumber('--seeds', values.seeds, 1);
const first = readNumber('--seed', values.seed ?? String(randomInt(2 ** 30)), 0);

if (seeds === 1) console.log(await historyFrom(first));
const failure = await firstFailure(first, seeds);
if (failure !== undefined) process.exitCode = 1;
console.log(failure ?? `${seeds} histories from seed ${first}: no promise broken`);
