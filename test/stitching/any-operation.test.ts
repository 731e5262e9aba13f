import fc from 'fast-check';
import {
  isObjectType,
  parse,
  print,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
  type FieldNode,
  type GraphQLSchema,
} from 'graphql';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import type { Additions } from '../../src/stitching/additions.ts';
import { startGatewayOverSandbox, type Answer } from '../support/gateway/gateway.ts';
import { servedOnce } from '../support/gateway/served-once.ts';
import { fullScalar, fullSdl, fullService } from '../support/imitations/full-service.ts';
import { hasFewDirectives, randomOperation } from '../support/random/random-operation.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const RUNS = randomRuns(60);

type Parent = Readonly<Record<string, unknown>>;

/** Each own field returns what its resolver got. */
const additions: Additions = {
  typeDefs: `
    extend type Query { own: String! }
    extend type Candidate { own: String! }
    extend type Vacancy { own: String! }
    extend type Robot { own: String! }
  `,
  resolvers: {
    Query: { own: () => 'root' },
    Candidate: {
      own: {
        selectionSet: '{ id name stage }',
        resolve: (p: Parent) => seen(p, 'id', 'name', 'stage'),
      },
    },
    Vacancy: {
      own: { selectionSet: '{ id open }', resolve: (p: Parent) => seen(p, 'id', 'open') },
    },
    Robot: {
      own: { selectionSet: '{ id model }', resolve: (p: Parent) => seen(p, 'id', 'model') },
    },
  },
};

function seen(parent: Parent, ...names: string[]): string {
  return names.map((name) => String(parent[name])).join('|');
}

const OWN = 'addedKey';

test('any operation has the same answer with own fields as without, and their resolvers get the true values', async () => {
  const { schema, records } = fullService();
  await using gateway = await startGatewayOverSandbox(
    { schema },
    { snapshot: fullSdl, additions, config: { maxAliases: 1_000, maxDepth: 30 } },
  );
  const own = new Set([
    'root',
    ...records.candidates.map((one) => seen(one, 'id', 'name', 'stage')),
    ...records.vacancies.map((one) => seen(one, 'id', 'open')),
    ...records.robots.map((one) => seen(one, 'id', 'model')),
  ]);
  const { served } = gateway.gateway;
  const plainSchema = servedOnce(
    fullSdl,
    readConfig({}, () => ''),
    undefined,
  ).schema;
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      const { query, variables } = randomOperation(plainSchema, g, { scalar: fullScalar });
      const document = parse(query);
      if (validate(served.schema, document).length > 0 || !hasFewDirectives(document)) return;
      const plain = await gateway.ask<Parent>(query, variables);
      const text = print(withOwnFields(served.schema, query));
      const stitched = await gateway.ask<Parent>(text, variables);
      const found: unknown[] = [];
      if (!plain.data || !stitched.data) {
        expect([text, stitched.errors?.length ?? 0]).toEqual([text, plain.errors?.length ?? 0]);
        return;
      }
      const left = withoutAdded(stitched.data, found);
      compared += found.length;
      expect([text, left]).toEqual([text, plain.data]);
      expect(found.filter((one) => !own.has(String(one)))).toEqual([]);
      expect(errorsOf(stitched)).toEqual(errorsOf(plain));
    }),
    { numRuns: RUNS },
  );
  expect(compared).toBeGreaterThan(RUNS);
});

function errorsOf({ errors = [] }: Answer<unknown>) {
  return errors.map(({ message, path }) => `${path?.join('.')}: ${message}`).toSorted();
}

/** Selects the own field wherever a type has one. */
function withOwnFields(schema: GraphQLSchema, query: string) {
  const types = new TypeInfo(schema);
  const field: FieldNode = (parse(`{ ${OWN}: own }`).definitions[0] as never)['selectionSet'][
    'selections'
  ][0];
  return visit(
    parse(query),
    visitWithTypeInfo(types, {
      SelectionSet: {
        leave: (node) => {
          const type = types.getParentType();
          if (!isObjectType(type) || !type.getFields()['own']) return undefined;
          return { ...node, selections: [field, ...node.selections] };
        },
      },
    }),
  );
}

function withoutAdded(value: unknown, found: unknown[]): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutAdded(one, found));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) => {
      if (name !== OWN) return [[name, withoutAdded(one, found)]];
      found.push(one);
      return [];
    }),
  );
}
