import fc from 'fast-check';
import { parse, validate, type GraphQLFormattedError, type GraphQLSchema } from 'graphql';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { randomOperation, vocabularyOf } from '../judge/operation.ts';
import { Verbatim } from './exact-json.ts';
import { publishedSchemas } from './published-schemas.ts';
import { BEYOND_JAVASCRIPT, seededMock } from './seeded-mock.ts';
import { serviceOf, type Service } from './service.ts';
import { startSideBySide, type SideBySide } from './side-by-side.ts';
import { SEED } from '../support/random/random-runs.ts';

/** Operations per schema and service. */
const RUNS = 80;

describe.each(publishedSchemas)('%s', (_, load) => {
  let schema: GraphQLSchema;
  let world: SideBySide;
  let service: Service;
  beforeAll(async () => {
    schema = load();
    world = await startSideBySide({
      schema,
      service: (operation) => service(operation),
    });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test(
    'the gateway answers random operations exactly as the service does',
    async () => {
      service = serviceOf({ schema, ...seededMock(SEED) });
      await expectSameAnswers(world, schema);
    },
    RUNS * 2_000,
  );

  test(
    'the gateway passes on integers that JavaScript cannot represent, and what services add to answers',
    async () => {
      service = serviceOf({ schema, ...seededMock(SEED + 1, BEYOND_JAVASCRIPT), amend });
      await expectSameAnswers(world, schema);
    },
    RUNS * 2_000,
  );
});

/** What GitHub adds to its errors, and Shopify to its answers. */
function amend(result: { errors?: readonly { toJSON(): GraphQLFormattedError }[] }): object {
  return {
    ...result,
    ...(result.errors && {
      errors: result.errors.map((error) => ({ type: 'NOT_FOUND', ...error.toJSON(), rank: 1 })),
    }),
    extensions: { cost: { requested: new Verbatim('98765432109876543210') }, id: 'é' },
  };
}

async function expectSameAnswers(world: SideBySide, schema: GraphQLSchema): Promise<void> {
  const words = vocabularyOf(schema, scalar);
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      const operation = randomOperation(words, g);
      fc.pre(validate(schema, parse(operation.query)).length === 0);
      await world.expectSame(operation);
    }),
    { numRuns: RUNS, maxSkipsPerRun: 400, unbiased: true, interruptAfterTimeLimit: 120_000 },
  );
}

function scalar(name: string, g: fc.GeneratorValue): unknown {
  switch (name) {
    case 'Int':
      return g(fc.integer, { min: -1, max: 120 });
    case 'Float':
      return g(fc.integer, { min: -10, max: 10 }) / 4;
    case 'Boolean':
      return g(fc.boolean);
    case 'ID':
    case 'String':
      return g(fc.constantFrom, 'MDQ6', '7', '', 'é"\\');
    default:
      return g(fc.constantFrom, '2026-01-05T00:00:00Z', 'x', '');
  }
}
