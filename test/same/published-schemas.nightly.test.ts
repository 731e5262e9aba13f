import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import {
  buildClientSchema,
  buildSchema,
  parse,
  validate,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { randomOperation, vocabularyOf } from '../judge/operation.ts';
import { made } from '../service/made.ts';
import { serviceOf, startSideBySide, type Answering, type SideBySide } from './side-by-side.ts';

/** Operations per schema and service. */
const RUNS = 80;

/**
 * Large schemas that their owners publish on npm under the MIT licence. GitHub's defines some fields twice. Its root is
 * a Node, and nobody selects the root through an interface that it does not have, inside of one that it has.
 */
const SCHEMAS: Readonly<Record<string, () => GraphQLSchema>> = {
  GitHub: () =>
    buildSchema(
      textOf('@octokit/graphql-schema/schema.graphql').replace(
        'type Query implements Node {',
        'type Query {',
      ),
      { assumeValid: true },
    ),
  'Shopify Storefront': () => introspected('@shopify/hydrogen-react/storefront.schema.json'),
  'Shopify Customer Account': () =>
    introspected('@shopify/hydrogen-react/customer-account.schema.json'),
};

function introspected(file: string): GraphQLSchema {
  const read = JSON.parse(textOf(file));
  return buildClientSchema(read.data ?? read);
}

/** Reads the file, since an `import` of the packages returns code, or nothing. */
function textOf(file: string): string {
  return readFileSync(`bench/node_modules/${file}`, 'utf8');
}

describe.each(Object.entries(SCHEMAS))('%s', (_, load) => {
  let schema: GraphQLSchema;
  let world: SideBySide;
  let service: Answering;
  beforeAll(async () => {
    schema = load();
    world = await startSideBySide({ schema, service: (operation) => service(operation) });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test.each([
    ['exactly as the service does', {}],
    [
      'with integers that JavaScript cannot represent, and with what services add',
      { scalars: [LONG, { b: [LONG], a: 1 }], amend: amended },
    ],
  ])(
    'random operations are answered %s',
    async (__, { scalars, amend }: { scalars?: unknown[]; amend?: typeof amended }) => {
      service = serviceOf(made(schema, { fails: true, ...(scalars && { scalars }) }), amend);
      const words = vocabularyOf(schema);
      await fc.assert(
        fc.asyncProperty(fc.gen(), async (g) => {
          const operation = randomOperation(words, g);
          fc.pre(validate(schema, parse(operation.query)).length === 0);
          await world.expectSame(operation);
        }),
        { numRuns: RUNS, maxSkipsPerRun: 400, unbiased: true, interruptAfterTimeLimit: 120_000 },
      );
    },
    RUNS * 2_000,
  );
});

/** An integer that JavaScript cannot represent. TypeScript does not know `rawJSON` yet. */
const LONG = (JSON as unknown as { rawJSON(text: string): object }).rawJSON('98765432109876543210');

/** What GitHub adds to its errors, and Shopify to its answers. */
function amended(result: { errors?: readonly { toJSON(): GraphQLFormattedError }[] }): object {
  return {
    ...result,
    ...(result.errors && {
      errors: result.errors.map((error) => ({ type: 'NOT_FOUND', ...error.toJSON(), rank: 1 })),
    }),
    extensions: { cost: { requested: LONG }, id: 'é' },
  };
}
