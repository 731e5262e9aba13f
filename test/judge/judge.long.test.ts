import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { randomRuns, SEED, usually } from '../support/random/random-runs.ts';
import type { Answer } from './cursors.ts';
import { judge, newJudgement } from './judge.ts';
import { openWorlds } from './world.ts';

test('random operations are answered as the service and its lists in memory say', async () => {
  const judgement = newJudgement();
  const worlds = await openWorlds();
  for (const world of worlds) {
    const { schema, snapshot, prefix: schemaPrefix } = world;
    const config = { schemaPrefix, maxDepth: 100, maxAliases: 1_000, maxTokens: 20_000 };
    await using gateway = await startGatewayOverSandbox({ schema }, { snapshot, config });
    const sides = new Map([
      ['the lists in memory', world.oracle.ask],
      ['the gateway', ({ query, variables }) => gateway.ask(query, variables) as Promise<Answer>],
    ] satisfies [string, typeof world.oracle.ask][]);
    const operations = Math.ceil(randomRuns(2_500) / worlds.length);
    await judge(world, sides, { operations, seed: SEED }, judgement);
  }
  const { counts, features, differences } = judgement;
  const unexplained = [...differences.values()].filter(({ rule }) => rule === undefined);
  expect(unexplained).toEqual([]);
  expect(counts.data / counts.all).toBeGreaterThan(0.8);
  const rare = [...features].filter(([, count]) => count < usually(25));
  expect(rare).toEqual([]);
}, 300_000);
