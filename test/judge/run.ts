import process from 'node:process';
import { parseArgs } from 'node:util';
import type { Ask } from './cursors.ts';
import { judge, newJudgement, type Found } from './judge.ts';
import { startProduct } from './product.ts';
import { openWorlds } from './world.ts';

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    /** The folder of the product that is judged. */
    product: { type: 'string', default: process.cwd() },
    /** The folder of a product to compare it with. */
    old: { type: 'string' },
    world: { type: 'string' },
  },
});

const worlds = (await openWorlds()).filter(
  ({ name }) => values.world === undefined || name === values.world,
);
const operations = Math.ceil(Number(values.operations) / worlds.length);
const judgement = newJudgement();
for (const world of worlds) {
  await using tested = await startProduct(values.product, world);
  await using old = values.old === undefined ? undefined : await startProduct(values.old, world);
  const sides = new Map<string, Ask>([
    ...(old ? ([['the old product', old.ask]] as const) : []),
    ['the list in memory', world.oracle.ask],
    ['the product', tested.ask],
  ]);
  await judge(world, sides, { operations, seed: Number(values.seed) }, judgement);
}
const { counts, features, differences } = judgement;
const print = (text: string) => process.stdout.write(`${text}\n`);
print(
  `${counts.all} operations: ${counts.data} with data, ${counts.noData} without, ${counts.refused} refused`,
);
for (const [feature, count] of [...features].toSorted(([, a], [, b]) => a - b))
  print(`${count}\t${feature}`);
const all = [...differences.values()].toSorted((a, b) => b.count - a.count);
for (const found of all) print(described(found));
const unexplained = all.filter(({ rule }) => rule === undefined);
print(`${all.length} kinds of differences, ${unexplained.length} unexplained`);
process.exitCode = unexplained.length > 0 ? 1 : 0;

function described({ kind, between, world, count, operation, rule, left, right }: Found): string {
  return [
    `\n${count} x ${between} (${world}): ${kind}`,
    rule ?? 'UNEXPLAINED',
    operation.query,
    JSON.stringify(operation.variables),
    left.slice(0, 1_500),
    right.slice(0, 1_500),
  ].join('\n');
}
