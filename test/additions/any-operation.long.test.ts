import fc from 'fast-check';
import {
  isObjectType,
  parse,
  print,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { difference } from '../judge/compare.ts';
import { withCursors, type Answer } from '../judge/cursors.ts';
import { randomOperation, type Operation } from '../judge/operation.ts';
import { fullWorld } from '../judge/world.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { fullService } from '../service/full.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { secondService } from './people.ts';

const RUNS = randomRuns(300);

type Fields = Readonly<Record<string, unknown>>;

function seen(parent: Fields, ...names: string[]): string {
  return names.map((name) => String(parent[name])).join('|');
}

/** A field whose resolver returns what it got of these fields. */
function seeing(...names: string[]) {
  const resolve = (parent: Fields) => seen(parent, ...names);
  return { own: { selectionSet: `{ ${names.join(' ')} }`, resolve } };
}

const additions: Additions = {
  subschemas: [secondService('rating', undefined, { of: 'Candidate', idType: 'Int' })],
  typeDefs: `
    extend type Query { own: String! }
    extend type Candidate { own: String! }
    extend type Vacancy { own: String! }
    extend type Robot { own: String! }
  `,
  resolvers: {
    Query: { own: () => 'root' },
    Candidate: seeing('id', 'name', 'stage'),
    Vacancy: seeing('id', 'open'),
    Robot: seeing('id', 'model'),
  },
};

const OWN = 'addedKey';
const RATED = 'ratedKey';

test('random operations with added fields are answered as the service and its lists say, and resolvers get the true values', async () => {
  const world = fullWorld();
  const { records } = fullService();
  await using gateway = await startGatewayOverService(
    { schema: world.schema },
    { snapshot: world.snapshot, additions, config: { maxAliases: 1_000, maxDepth: 100 } },
  );
  const { offered } = gateway.gateway;
  const trueValues = new Set([
    'root',
    ...records.candidates.map((candidate) => seen(candidate, 'id', 'name', 'stage')),
    ...records.vacancies.map((vacancy) => seen(vacancy, 'id', 'open')),
    ...records.robots.map((robot) => seen(robot, 'id', 'model')),
  ]);
  const values: unknown[] = [];
  const ask = withCursors(async ({ query, variables }) => {
    const text = print(withOwnFields(offered.schema, query));
    const answer = (await gateway.ask(text, { ...variables })) as Answer;
    return { ...answer, data: withoutAdded(answer.data, values) };
  });
  const askLists = withCursors(world.ask);
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      const { query, variables } = randomOperation(world, g);
      // graphql-tools takes an object with this key for a promise.
      const operation: Operation = { query: query.replaceAll(/\bthen:/g, 'also:'), variables };
      fc.pre(validate(offered.schema, parse(operation.query)).length === 0);
      const answer = await ask(operation);
      // With added fields, an operation may read 50,000 values.
      if (/OPERATION_TOO_COMPLEX/.test(JSON.stringify(answer.errors))) return;
      const expected = await askLists(operation);
      // Each root field is a separate request here, and each of them may leave no data.
      if (answer.errors && !answer.data && !expected.data) return;
      const differing = difference(operation.query, answer, expected);
      expect({ operation, differing }).toEqual({ operation, differing: undefined });
      expect(values.filter((value) => !trueValues.has(String(value)))).toEqual([]);
    }),
    { numRuns: RUNS, unbiased: true, interruptAfterTimeLimit: 30_000 },
  );
  expect(values.length).toBeGreaterThan(RUNS);
}, 120_000);

/** Selects the added fields wherever a type has them. */
function withOwnFields(schema: GraphQLSchema, query: string) {
  const types = new TypeInfo(schema);
  const ownField = fieldsIn(`${OWN}: own`);
  const both = fieldsIn(`${OWN}: own ${RATED}: rating`);
  return visit(
    parse(query),
    visitWithTypeInfo(types, {
      SelectionSet: {
        leave: (node) => {
          const type = types.getParentType();
          if (!isObjectType(type) || !type.getFields()['own']) return undefined;
          const added = type.getFields()['rating'] ? both : ownField;
          return { ...node, selections: [...added, ...node.selections] };
        },
      },
    }),
  );
}

function withoutAdded(value: unknown, values: unknown[]): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutAdded(item, values));
  if (typeof value !== 'object' || value === null) return value;
  const { [OWN]: own, [RATED]: rating, ...rest } = value as Record<string, unknown>;
  if (own !== undefined) values.push(own);
  // Both are about the record itself, whatever the operation calls its id.
  if (rating !== undefined) expect(rating).toBe(`rating of ${String(own).split('|')[0]}`);
  return Object.fromEntries(
    Object.entries(rest).map(([name, member]) => [name, withoutAdded(member, values)]),
  );
}

function fieldsIn(names: string) {
  return (parse(`{ ${names} }`).definitions[0] as OperationDefinitionNode).selectionSet.selections;
}
