/**
 * Explores random traces of the model of the claim protocol, and prints what they showed. If a trace violates an
 * invariant, it prints the trace and the command that replays it, and the exit code is 1.
 *
 *   npm run model -- --traces 100000 [--seed 1] [--keep <folder>]
 *
 * With --keep the first traces of each process are written to a folder, to be replayed (replay.ts).
 */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import process from 'node:process';
import { readNumber, readOptions } from '../../support/processes/arguments.ts';
import { INVARIANTS, runModel, STATES } from './quint.ts';

/** Traces of one process: more would take long to replay. */
const PIECE = 5_000;
/** Traces that are kept of each. */
const KEPT = 100;

const { values } = readOptions({
  options: {
    traces: { type: 'string', default: '10000' },
    seed: { type: 'string' },
    keep: { type: 'string' },
  },
});
const traces = readNumber('--traces', values.traces, 1);
const seed = readNumber('--seed', values.seed ?? String(randomInt(2 ** 31)), 0);
const begun = performance.now();
const witnessed = Object.fromEntries(STATES.map((name) => [name, 0]));

for (let done = 0; done < traces;) {
  const piece = { seed: seed + done, traces: Math.min(PIECE, traces - done) };
  const report = await runModel({
    init: 'init',
    ...piece,
    invariants: INVARIANTS,
    witnesses: STATES,
    ...(values.keep !== undefined && {
      keep: { path: join(values.keep, `${done}-{seq}.itf.json`), count: KEPT },
    }),
  });
  done += piece.traces;
  if (report.violated.length > 0) {
    process.stdout.write(
      `${report.output}\nViolated: ${report.violated.join(', ')}. To replay it:\n` +
        `  npm run model -- --traces ${piece.traces} --seed ${piece.seed}\n`,
    );
    process.exit(1);
  }
  for (const name of STATES) witnessed[name]! += report.witnessed[name] ?? 0;
  const seconds = Math.round((performance.now() - begun) / 1000);
  process.stdout.write(`${done} traces from seed ${seed}, no violation, ${seconds} s\n`);
}
process.stdout.write(`Traces with these states: ${JSON.stringify(witnessed)}\n`);
