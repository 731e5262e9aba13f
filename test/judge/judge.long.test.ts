import fc from 'fast-check';
import { parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { randomRuns, usually } from '../support/random/random-runs.ts';
import { difference } from './compare.ts';
import { withCursors, type Answer } from './cursors.ts';
import { FEATURES, featuresOf } from './features.ts';
import { randomOperation, type Operation } from './operation.ts';
import { openWorlds, type World } from './world.ts';

test('random operations are answered as the service and its lists in memory say', async () => {
  const features = new Map(FEATURES.map((feature) => [feature, 0]));
  const counts = { all: 0, data: 0 };
  for (const world of await openWorlds()) {
    const { schema, snapshot, prefix: schemaPrefix, oracle } = world;
    const config = { schemaPrefix, maxDepth: 100, maxAliases: 1_000, maxTokens: 20_000 };
    await using gateway = await startGatewayOverSandbox({ schema }, { snapshot, config });
    const ask = withCursors(
      ({ query, variables }) => gateway.ask(query, variables) as Promise<Answer>,
    );
    const askLists = withCursors(oracle.ask);
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const operation = randomOperation(world, g);
        fc.pre(isValid(world, operation));
        const answer = await ask(operation);
        const differing = difference(operation.query, answer, await askLists(operation));
        expect({ world: world.name, operation, differing }).toEqual({
          world: world.name,
          operation,
          differing: undefined,
        });
        counts.all += 1;
        if (!answer.data) return;
        counts.data += 1;
        for (const feature of featuresOf(world, operation, answer))
          features.set(feature, (features.get(feature) ?? 0) + 1);
      }),
      // A failing operation is made smaller for half a minute.
      { numRuns: randomRuns(800), unbiased: true, interruptAfterTimeLimit: 30_000 },
    );
  }
  expect(counts.data / counts.all).toBeGreaterThan(0.8);
  expect([...features].filter(([, count]) => count < usually(25))).toEqual([]);
}, 300_000);

function isValid({ served }: World, { query }: Operation): boolean {
  return query.length < MOST_CHARACTERS && validate(served.schema, parse(query)).length === 0;
}

const MOST_CHARACTERS = 20_000;
