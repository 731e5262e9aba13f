import fc from 'fast-check';
import { parse, validate, type GraphQLFormattedError, type GraphQLSchema } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { randomOperation, vocabularyOf } from '../judge/operation.ts';
import { Verbatim } from './exact-json.ts';
import { publishedSchemas } from './published-schemas.ts';
import { BEYOND_JAVASCRIPT, seededMock } from './seeded-mock.ts';
import { serviceOf, type Service } from './service.ts';
import {
  startSideBySide,
  type SentOperation,
  type Compared,
  type SideBySide,
} from './side-by-side.ts';
import { SEED } from '../support/random/random-runs.ts';

/** Operations per schema and service. */
const RUNS = 80;
/** How often to try to make a failing operation smaller. */
const TRIES = 100;

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
      const seen = await expectSameAnswers(world, schema, RUNS);
      expectVariety(seen);
    },
    RUNS * 2_000,
  );

  test(
    'the gateway passes on integers that JavaScript cannot represent, and what services add to answers',
    async () => {
      service = serviceOf({ schema, ...seededMock(SEED + 1, BEYOND_JAVASCRIPT), amend });
      await expectSameAnswers(world, schema, RUNS);
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

interface Seen {
  readonly operation: SentOperation;
  readonly compared: Compared;
}

async function expectSameAnswers(
  world: SideBySide,
  schema: GraphQLSchema,
  runs: number,
): Promise<Seen[]> {
  const seen: Seen[] = [];
  const words = vocabularyOf(schema, scalar);
  let tries = 0;
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      if (tries > TRIES) return;
      const operation = randomOperation(words, g);
      const document = parse(operation.query);
      fc.pre(validate(schema, document).length === 0);
      if (tries > 0) tries += 1;
      try {
        seen.push({ operation, compared: await world.expectSame(operation) });
      } catch (error) {
        tries += 1;
        throw error;
      }
    }),
    { numRuns: runs, maxSkipsPerRun: 400, unbiased: true },
  );
  return seen;
}

/** Expects different kinds of operations and answers: similar or empty ones would prove nothing. */
function expectVariety(seen: readonly Seen[]): void {
  const share = (is: (each: Seen) => boolean) => seen.filter(is).length / seen.length;
  const asks = (pattern: RegExp) => share(({ operation }) => pattern.test(operation.query));
  const shares = {
    mutations: asks(/mutation Random/),
    'several operations': asks(/Randomz/),
    'named fragments': asks(/\n *fragment /),
    'inline fragments': asks(/\.\.\. on /),
    'spreads at the root': asks(/Random[^{]*\{[^{}]*\.\.\./),
    conditions: asks(/@(skip|include)/),
    variables: share(({ operation }) => Object.keys(operation.variables ?? {}).length > 0),
    data: share(({ compared }) => (compared.direct.data?.length ?? 0) > 100),
    'much data': share(({ compared }) => (compared.direct.data?.length ?? 0) > 600),
    errors: share(({ compared }) => (compared.direct.errors?.length ?? 0) > 0),
    'errors in lists': share(({ compared }) =>
      /,\d+[,\]]/.test(compared.direct.errors?.join() ?? ''),
    ),
  };
  const rare = Object.entries(shares).filter(([, value]) => value < 0.03);
  expect(rare, JSON.stringify(shares)).toEqual([]);
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
