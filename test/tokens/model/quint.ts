import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';

export interface ModelRun {
  /** `initWrong` begins each trace with one fault of the protocol, which an invariant must notice. */
  readonly init: 'init' | 'initWrong';
  readonly seed: number;
  readonly traces: number;
  /** The invariants of every trace. */
  readonly invariants: readonly string[];
  /** States that are counted. */
  readonly witnesses: readonly string[];
  /** Where the first traces are written: a path with `{seq}`, and how many. */
  readonly keep?: { readonly path: string; readonly count: number };
}

export interface ModelReport {
  /** The invariants that a trace violated. */
  readonly violated: readonly string[];
  /** In how many traces each of the states occurred. */
  readonly witnessed: Readonly<Record<string, number>>;
  readonly output: string;
}

export const INVARIANTS = [
  'neverSentAgain',
  'neverEarlyAgain',
  'newestIsKept',
  'usedIsKept',
  'lostIsSpent',
];
/** Must occur in some traces; otherwise they prove nothing. */
export const STATES = [
  'rotatedTwice',
  'saidLost',
  'hadRescueFile',
  'wasHealed',
  'tookOver',
  'wasRefusedEarly',
];
const STEPS = 30;

/** Explores random traces of `claims.qnt` in the TypeScript simulator of Quint, in a process of its own. */
export async function runModel(run: ModelRun): Promise<ModelReport> {
  const { init, seed, traces, invariants, witnesses, keep } = run;
  const packageFile = createRequire(import.meta.url).resolve('@informalsystems/quint/package.json');
  const options = {
    init,
    backend: 'typescript',
    seed,
    'max-samples': traces,
    'max-steps': STEPS,
    verbosity: 1,
    ...(keep && { 'out-itf': keep.path, 'n-traces': keep.count }),
  };
  const call = [
    join(dirname(packageFile), 'dist/src/cli.js'),
    'run',
    join(import.meta.dirname, 'claims.qnt'),
    ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    ...(invariants.length > 0 ? ['--invariants', ...invariants] : []),
    ...(witnesses.length > 0 ? ['--witnesses', ...witnesses] : []),
  ];
  // A violation ends Quint with an error, after it has been reported.
  const { stdout, stderr } = await promisify(execFile)(process.execPath, call).catch(
    (error: unknown) => error as { stdout: string; stderr: string },
  );
  const output = stdout + stderr;
  const violated = invariants.filter((name) => output.includes(`❌ ${name}`));
  if (violated.length === 0 && !output.includes('[ok]')) throw new Error(output);
  const witnessed = Object.fromEntries(
    [...output.matchAll(/^(\w+) was witnessed in (\d+) trace/gm)].map(([, name, count]) => [
      name!,
      Number(count),
    ]),
  );
  return { violated, witnessed, output };
}
