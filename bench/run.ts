import process from 'node:process';
import { additions } from './benchmarks/additions.ts';
import { crowds } from './benchmarks/crowds.ts';
import { pages } from './benchmarks/pages.ts';
import { requests } from './benchmarks/requests.ts';
import { start } from './benchmarks/start.ts';
import { wholeLists } from './benchmarks/whole-lists.ts';
import { installPeers } from './install-peers.ts';
import { printRows, verdict, type Benchmark, type Row } from './report.ts';

const benchmarks: Record<string, Benchmark> = {
  pages,
  additions,
  'whole-lists': wholeLists,
  requests,
  crowds,
  start,
};

const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !Object.hasOwn(benchmarks, name));
if (unknown.length > 0) {
  const names = Object.keys(benchmarks).join(', ');
  process.stderr.write(`There is no benchmark ${unknown.join(', ')}. There are: ${names}.\n`);
  process.exitCode = 2;
} else {
  installPeers();
  process.exitCode = await run(chosen.length > 0 ? chosen : Object.keys(benchmarks));
}

/** Runs benchmarks one after the other, so that they do not measure each other. */
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
