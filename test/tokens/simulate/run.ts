/**
 * Runs histories of replicas that share one token set, from one seed after the other, and checks each of them. A history
 * that breaks a promise is made as short as possible, and printed with the command that replays it; the exit code is 1
 * then. It is 1 too if a long run met a row of the fault table too seldom: less than 20 times in 10,000 histories or more, or never in 250.
 *
 *   npm run simulate [-- --seeds 2000] [--seed 1] [--flaw use-before-save]
 *
 * With `--seeds 1` the history itself is printed. A flaw is something that is wrong on purpose (flaws.ts).
 */
import { randomInt } from 'node:crypto';
import process from 'node:process';
import fc from 'fast-check';
import { readNumber, readOptions, usageError } from '../../support/processes/arguments.ts';
import { FLAWS } from './flaws.ts';
import { runPlan, type History } from './history.ts';
import { plan, type Plan } from './plan.ts';
import { ROWS, type Row } from './rows.ts';

const USUAL = 2_000;
/** In MANY histories or more all rows are met, and in 10,000 each is met OFTEN or more. */
const MANY = 250;
const OFTEN = 20;
const REPORT_EVERY = 10_000;

const { seeds, first, flawName } = readArguments();
// Histories throw errors by the thousand, and only their messages are read.
if (seeds > 1) Error.stackTraceLimit = 0;
const flaw = flawName === undefined ? undefined : FLAWS[flawName];
process.exitCode = await simulate();

async function simulate(): Promise<number> {
  const rows = new Map<Row, number>(ROWS.map((row) => [row, 0]));
  for (let done = 0; done < seeds; done += 1) {
    const seed = first + done;
    const failure = await failureFrom(seed, rows);
    if (failure) return report(seed, failure);
    if (done > 0 && done % REPORT_EVERY === 0) print(`${historiesFrom(done)}\n`);
  }
  const least = seeds < 10_000 ? 1 : OFTEN;
  const rare = [...rows].filter(([, count]) => count < least);
  if (seeds >= MANY) {
    for (const [row, count] of rows) print(`${String(count).padStart(9)}  ${row}\n`);
  }
  print(`${historiesFrom(seeds)}, no promise broken\n`);
  if (seeds < MANY || rare.length === 0) return 0;
  print(`Met less than ${least} times: ${rare.map(([row]) => row).join('; ')}\n`);
  return 1;
}

function historiesFrom(count: number): string {
  return `${count} ${count === 1 ? 'history' : 'histories'} from seed ${first}`;
}

/** The shortest plan that fails, if the plan of this seed does. */
async function failureFrom(seed: number, rows: Map<Row, number>): Promise<Plan | undefined> {
  let isFirst = true;
  const holds = async (candidate: Plan): Promise<boolean> => {
    const history = await runPlan(candidate, flaw);
    if (isFirst) {
      for (const [row, count] of history.rows) rows.set(row, rows.get(row)! + count);
      if (seeds === 1) printHistory(candidate, history);
    }
    isFirst = false;
    return history.violations.length === 0;
  };
  const { failed, counterexample } = await fc.check(fc.asyncProperty(plan, holds), {
    seed,
    numRuns: 1,
    unbiased: true,
  });
  return failed ? counterexample![0] : undefined;
}

async function report(seed: number, shortest: Plan): Promise<number> {
  const history = await runPlan(shortest, flaw);
  print(`\nThe shortest history that fails, from seed ${seed}:\n`);
  printHistory(shortest, history);
  const again = flawName === undefined ? '' : ` --flaw ${flawName}`;
  print(`\n${history.violations.join('\n')}\n`);
  print(`To replay it: npm run simulate -- --seeds 1 --seed ${seed}${again}\n`);
  return 1;
}

function printHistory({ steps: _steps, ...world }: Plan, { lines }: History): void {
  print(`${JSON.stringify(world)}\n${lines.join('\n')}\n`);
}

function print(text: string): void {
  process.stdout.write(text);
}

function readArguments() {
  const { values } = readOptions({
    options: {
      seeds: { type: 'string', default: String(USUAL) },
      seed: { type: 'string' },
      flaw: { type: 'string' },
    },
  });
  if (values.flaw !== undefined && !(values.flaw in FLAWS)) {
    usageError(`--flaw takes one of these: ${Object.keys(FLAWS).join(', ')}.`);
  }
  return {
    seeds: readNumber('--seeds', values.seeds, 1),
    first: readNumber('--seed', values.seed ?? String(randomInt(2 ** 30)), 0),
    flawName: values.flaw,
  };
}
