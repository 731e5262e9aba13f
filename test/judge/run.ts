import process from 'node:process';
import { parseArgs } from 'node:util';
import type { Ask } from './cursors.ts';
import { judge, newJudgement, type Found } from './judge.ts';
import { startProduct } from './product.ts';
import { openPublishedWorlds, openWorlds } from './world.ts';

/** How often each feature occurs in so many operations, at least. */
const LEAST = 50;
const WHOLE = 20_000;

/**
 * Judges a product with random operations:
 *
 *     node test/judge/run.ts --operations 20000 --seed 1
 *
 * Exits 1 if there is a difference that nothing explains, or if the operations prove too little.
 */
const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    /** The folder of the product that is judged. */
    product: { type: 'string', default: process.cwd() },
    /** Only the world of this name. */
    world: { type: 'string' },
    /** Also those of published schemas, whose packages are in `bench/node_modules`. */
    published: { type: 'boolean', default: false },
  },
});

const all = [...(await openWorlds()), ...(values.published ? openPublishedWorlds() : [])];
const worlds = all.filter(({ name }) => values.world === undefined || name === values.world);
const operations = Math.ceil(Number(values.operations) / worlds.length);
const judgement = newJudgement();
for (const world of worlds) {
  await using tested = await startProduct(values.product, world);
  const sides = new Map<string, Ask>([
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
const found = [...differences.values()].toSorted((a, b) => b.count - a.count);
for (const each of found) print(described(each));
const unexplained = found.filter(({ rule }) => rule === undefined);
print(`${found.length} kinds of differences, ${unexplained.length} unexplained`);
const rare = [...features].filter(([, count]) => count < (LEAST * counts.all) / WHOLE);
for (const [feature] of rare) print(`too rare: ${feature}`);
const isEnough = counts.data >= 0.8 * counts.all;
if (!isEnough) print('too few operations gave data');
process.exitCode = unexplained.length + rare.length > 0 || !isEnough ? 1 : 0;

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
