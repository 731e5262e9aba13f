/**
 * Runs the suite's property tests from one new seed after the other, until the time is over or one of them fails.
 * A failure is printed with the command that replays it, and the exit code is 1 then.
 *
 *   npm run fuzz -- --minutes 30 [files and options of vitest]
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { nearestWord } from '../../src/words.ts';
import { usageError } from '../support/processes/arguments.ts';

const VITEST = join(
  dirname(fileURLToPath(import.meta.resolve('vitest/package.json'))),
  'vitest.mjs',
);
const IS_PROPERTY_TEST = /from '(?:fast-check|.*\/random-runs\.ts)'/;

const { minutes, patterns } = readArguments(process.argv.slice(2));
const folder = mkdtempSync(join(tmpdir(), 'recruiting-fuzz-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.exitCode = await fuzz();

/** A round that has begun is completed, so that a failure which is being shrunk is not missed. */
async function fuzz(): Promise<number> {
  const until = Date.now() + minutes * 60_000;
  let rounds = 0;
  do {
    const seed = randomInt(2 ** 31);
    process.stdout.write(`\nRound ${rounds + 1}: RANDOM_SEED=${seed}\n`);
    const failed = await failuresOf(seed);
    // vitest has said why.
    if (failed === undefined) return 1;
    if (failed.length > 0) {
      process.stdout.write(`\nFailed. To replay it:\n${failed.map(replay(seed)).join('')}`);
      return 1;
    }
    rounds += 1;
  } while (Date.now() < until);
  process.stdout.write(`\nNo failure in ${rounds} rounds.\n`);
  return 0;
}

interface Failure {
  readonly file: string;
  readonly tests: readonly string[];
}

/** @returns undefined if vitest did not run any test, for example because of an option that it does not know */
async function failuresOf(seed: number): Promise<Failure[] | undefined> {
  const output = join(folder, `${seed}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${output}`];
  // Only for what hangs: on a busy machine a test of thousands of random cases takes minutes, and is no failure.
  const patience = `--testTimeout=${10 * 60_000}`;
  const vitest = spawn(process.execPath, [VITEST, 'run', patience, ...reporters, ...patterns], {
    env: { ...process.env, RANDOM_SEED: String(seed) },
    stdio: 'inherit',
  });
  // As Ctrl+C in a terminal, which sends the signal to the child too.
  const end = () => void vitest.kill();
  process.once('SIGTERM', end).once('SIGINT', end);
  const [code, signal] = (await once(vitest, 'exit')) as [number | null, string | null];
  process.off('SIGTERM', end).off('SIGINT', end);
  if (code === 0) return [];
  if (signal !== null) throw new Error(`The tests were ended by ${signal}.`);
  return existsSync(output) ? failuresIn(readFileSync(output, 'utf8')) : undefined;
}

function failuresIn(report: string): Failure[] {
  const { testResults } = JSON.parse(report) as {
    testResults: {
      name: string;
      status: string;
      assertionResults: { status: string; fullName: string }[];
    }[];
  };
  const failed = testResults.filter(({ status }) => status === 'failed');
  // For example an error outside of any test: then everything that ran has to be run again.
  return (failed.length > 0 ? failed : testResults).map(({ name, assertionResults }) => ({
    file: relative('.', name),
    tests: assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName }) => fullName),
  }));
}

function replay(seed: number): (failure: Failure) => string {
  const { RANDOM_RUNS } = process.env;
  const runs = RANDOM_RUNS === undefined ? '' : `RANDOM_RUNS=${RANDOM_RUNS} `;
  return ({ file, tests }) =>
    `  RANDOM_SEED=${seed} ${runs}npm test -- ${[file, ...options()].join(' ')}\n` +
    tests.map((test) => `    ${test}\n`).join('');
}

/** The arguments of vitest that are not files. */
function options(): string[] {
  return patterns.filter((argument) => argument.startsWith('-'));
}

/** Unknown arguments are for vitest: a pattern of files, or an option. */
function readArguments(args: readonly string[]): { minutes: number; patterns: readonly string[] } {
  const slip = args.find((arg) => nearestWord(arg, ['--minutes']) && arg !== '--minutes');
  if (slip !== undefined) usageError(`There is no option ${slip}. Was --minutes 30 meant?`);
  const at = args.indexOf('--minutes');
  const value = at < 0 ? 5 : Number(args[at + 1]);
  if (!(value >= 0)) usageError('--minutes takes a number, such as --minutes 30.');
  const rest = at < 0 ? args : args.toSpliced(at, 2);
  return { minutes: value, patterns: rest.length > 0 ? rest : propertyTests() };
}

function propertyTests(): string[] {
  return globSync('test/**/*.test.ts').filter((file) =>
    IS_PROPERTY_TEST.test(readFileSync(file, 'utf8')),
  );
}
