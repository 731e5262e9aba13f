import process from 'node:process';
import { drains } from './drains.ts';
import { entities } from './entities.ts';
import { interactive } from './interactive.ts';
import { printRows, verdict, type Benchmark, type Row } from './report.ts';
import { streaming } from './streaming.ts';
import { throughput } from './throughput.ts';

const benchmarks: Record<string, Benchmark> = {
  drains,
  entities,
  interactive,
  streaming,
  throughput,
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(benchmarks, name));
if (unknown.length > 0) {
  const names = Object.keys(benchmarks).join(', ');
  process.stderr.write(`There is no benchmark ${unknown.join(', ')}. There are: ${names}.\n`);
  process.exitCode = 2;
} else {
  process.exitCode = await run(asked.length > 0 ? asked : Object.keys(benchmarks));
}

/** One after the other: side by side they would measure each other. */
async function run(names: readonly string[]): Promise<number> {
  const verdicts: string[] = [];
  let allHold = true;
  for (const name of names) {
    const { title, measure } = benchmarks[name]!;
    process.stdout.write(`\n${name}: ${title}\n\n`);
    let rows: readonly Row[];
    try {
      rows = await measure();
    } catch (error) {
      verdicts.push(`does not hold  ${name}: ${(error as Error).message}`);
      allHold = false;
      process.stdout.write(`  It failed: ${(error as Error).stack}\n`);
      continue;
    }
    process.stdout.write(printRows(rows));
    for (const row of rows) {
      const { holds, text } = verdict(row);
      if (holds === undefined) continue;
      verdicts.push(`${holds ? 'holds        ' : 'does not hold'}  ${name}: ${text}`);
      allHold &&= holds;
    }
  }
  process.stdout.write(`\n${verdicts.map((line) => `${line}\n`).join('')}`);
  return allHold ? 0 : 1;
}
