/**
 * Prints how many files and functions of src one request passes, for five kinds of requests to a warm gateway:
 *
 *   npm run ways [-- --files]
 */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { readOptions } from '../test/support/processes/arguments.ts';
import { ask, askPage } from './ask.ts';
import { startGateway } from './gateway.ts';
import { pathOf } from './child-processes.ts';
import type { RanFunction } from './processes/coverage.ts';
import { startBenchSandbox } from './services.ts';

const PERSONS = 500;
/** Enough to fill every cache, and to have the pages of the list in the page index. */
const WARM_UP = 5;
/** A timer may run in some rounds, but is unlikely to run in all. */
const ROUNDS = 3;
/** Time for the work after an answer: the end of the exchange, counters, logs. */
const SETTLED_MS = 50;
const DAYS = 24 * 60 * 60;

const CONNECTION = `{
  personsConnection(first: 50) {
    edges { cursor node { id firstName } }
    pageInfo { hasNextPage endCursor }
  }
}`;

const { values: options } = readOptions({
  options: { files: { type: 'boolean', default: false } },
});
await using sandbox = await startBenchSandbox({ persons: PERSONS });
await using gateway = await startGateway(sandbox, { reports: 'processes/coverage.ts' });
const { items } = await askPage(gateway, 50);

/** The order matters: the drains fill the page index before the record is looked up. */
const ways: Record<string, () => Promise<unknown>> = {
  'a page': () => askPage(gateway, 50),
  'a connection': () => ask(gateway, CONNECTION),
  'a second drain': () => ask(gateway, '{ allPersons { id firstName } }'),
  'one record by its id': () =>
    ask(gateway, 'query ($id: ID!) { person(id: $id) { firstName } }', { id: items[9]!.id }),
  'a page after an expired token': async () => {
    await sandbox.tell({ do: 'pass', seconds: 2 * DAYS });
    return await askPage(gateway, 50);
  },
};

for (const [name, request] of Object.entries(ways)) {
  for (let time = 0; time < WARM_UP; time += 1) await request();
  const passed = await passedBy(request);
  const files = Map.groupBy(passed, ({ file }) => file);
  process.stdout.write(`${name}: ${files.size} files, ${passed.length} functions\n`);
  if (options.files) for (const [file, ran] of files) printFile(file, ran);
}

/** The functions of src that run every time. */
async function passedBy(request: () => Promise<unknown>): Promise<RanFunction[]> {
  const rounds: RanFunction[][] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await wait(SETTLED_MS);
    await gateway.report<RanFunction[]>();
    await request();
    await wait(SETTLED_MS);
    rounds.push(await gateway.report<RanFunction[]>());
  }
  const [first, ...others] = rounds.map((ran) => new Map(ran.map((each) => [keyOf(each), each])));
  return [...first!]
    .filter(([key, { file }]) => isOurs(file) && others.every((round) => round.has(key)))
    .map(([, ran]) => ran)
    .toSorted((a, b) => a.file.localeCompare(b.file) || a.start - b.start);
}

function keyOf({ file, start }: RanFunction): string {
  return `${file} ${start}`;
}

function isOurs(file: string): boolean {
  return file.startsWith(pathOf('../src/'));
}

function printFile(file: string, ran: readonly RanFunction[]): void {
  const source = readFileSync(file, 'utf8');
  // Node replaces types with spaces.
  const lineOf = (start: number) => source.slice(0, start).split('\n').length;
  const names = ran.map(({ name, start }) => `${name || 'anonymous'}:${lineOf(start)}`);
  process.stdout.write(`  ${relative(pathOf('..'), file)}  ${names.join(' ')}\n`);
}
