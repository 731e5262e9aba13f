import type { SubschemaConfig } from '@graphql-tools/delegate';
import type { ExecutionRequest } from '@graphql-tools/utils';
import fc from 'fast-check';
import {
  buildSchema,
  execute,
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
import { readConfig } from '../../src/config.ts';
import type { ErrorCode } from '../../src/errors.ts';
import type { Additions } from '../../src/additions/additions.ts';
import { startGatewayOverSandbox, type Answer } from '../support/gateway/gateway.ts';
import { servedOnce } from '../support/gateway/served-once.ts';
import { fullScalar, fullSdl, fullService } from '../support/imitations/honest.ts';
import { randomOperation } from '../support/random/random-operation.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const RUNS = randomRuns(60);

type Parent = Readonly<Record<string, unknown>>;

/** Each own field returns what its resolver got. */
const additions: Additions = {
  subschemas: [ratings()],
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

const rated = ({ ids }: { ids: number[] }) => ids.map((id) => ({ id, rating: `rated ${id}` }));

function mergedBy(fieldName: string) {
  return {
    selectionSet: '{ id }',
    fieldName,
    key: ({ id }: { id: number }) => id,
    argsFromKeys: (ids: readonly unknown[]) => ({ ids }),
  };
}

/** A second service, which rates candidates and vacancies by their ids. */
function ratings(): SubschemaConfig {
  const schema = buildSchema(`
    type Query { ratedCandidates(ids: [Int!]!): [Candidate]! ratedVacancies(ids: [Int!]!): [Vacancy]! }
    type Candidate { id: Int! rating: String! }
    type Vacancy { id: Int! rating: String! }
  `);
  return {
    schema,
    executor: (({ document, variables }: ExecutionRequest) =>
      execute({
        schema,
        document,
        rootValue: { ratedCandidates: rated, ratedVacancies: rated },
        variableValues: variables as Record<string, unknown>,
      })) as SubschemaConfig['executor'] & object,
    merge: { Candidate: mergedBy('ratedCandidates'), Vacancy: mergedBy('ratedVacancies') },
  };
}

function seen(parent: Parent, ...names: string[]): string {
  return names.map((name) => String(parent[name])).join('|');
}

const OWN = 'addedKey';
const RATED = 'ratedKey';

test('any operation has the same answer with own fields as without, and their resolvers get the true values', async () => {
  const { schema, records } = fullService();
  await using gateway = await startGatewayOverSandbox(
    { schema },
    { snapshot: fullSdl, additions, config: { maxAliases: 1_000, maxDepth: 30 } },
  );
  const expected = new Set([
    'root',
    ...records.candidates.map((candidate) => seen(candidate, 'id', 'name', 'stage')),
    ...records.vacancies.map((vacancy) => seen(vacancy, 'id', 'open')),
    ...records.robots.map((robot) => seen(robot, 'id', 'model')),
  ]);
  const { offered: served } = gateway.gateway;
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
      if (validate(served.schema, document).length > 0) return;
      const plain = await gateway.ask<Parent>(query, variables);
      const text = print(withOwnFields(served.schema, query));
      const stitched = await gateway.ask<Parent>(text, variables);
      // With own fields, an operation may read 50,000 values: budgets.test.ts.
      if (hasCode(stitched, 'OPERATION_TOO_COMPLEX')) return;
      const values: unknown[] = [];
      if (!plain.data || !stitched.data) {
        // Each root field is a separate request then, and each may fail.
        expect([text, stitched.data ?? null, plain.data ?? null]).toEqual([text, null, null]);
        expect(stitched.errors).not.toHaveLength(0);
        return;
      }
      const left = withoutAdded(stitched.data, values);
      compared += values.length;
      expect([text, left]).toEqual([text, withoutAdded(plain.data, [])]);
      expect(values.filter((value) => !expected.has(String(value)))).toEqual([]);
      expect(errorsOf(stitched)).toEqual(errorsOf(plain));
    }),
    { numRuns: RUNS },
  );
  expect(compared).toBeGreaterThan(RUNS);
});

/** The list and the identity that a cursor names; the text itself if it is no cursor of the gateway. */
function recordAt(text: string): unknown {
  // Between a version byte and a checksum of four bytes.
  const json = Buffer.from(text, 'base64url').subarray(1, -4).toString();
  if (!json.startsWith('[')) return text;
  const [list, , , , , identity] = JSON.parse(json) as unknown[];
  return { list, identity };
}

function hasCode({ errors = [] }: Answer<unknown>, code: ErrorCode) {
  return errors.some(({ extensions }) => extensions?.['code'] === code);
}

function errorsOf({ errors = [] }: Answer<unknown>) {
  return errors.map(({ message, path }) => `${path?.join('.')}: ${message}`).toSorted();
}

/** Selects the own field wherever a type has one. */
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
  // Two operations may have read the record in pages of another size, and their cursors say so.
  if (typeof value === 'string') return recordAt(value);
  if (typeof value !== 'object' || value === null) return value;
  const { [OWN]: ownValue, [RATED]: rating, ...rest } = value as Record<string, unknown>;
  if (ownValue !== undefined) values.push(ownValue);
  // Both are about the record itself, whatever the operation calls its id.
  if (rating !== undefined) expect(rating).toBe(`rated ${String(ownValue).split('|')[0]}`);
  return Object.fromEntries(
    Object.entries(rest).map(([name, member]) => [name, withoutAdded(member, values)]),
  );
}

function fieldsIn(names: string) {
  return (parse(`{ ${names} }`).definitions[0] as OperationDefinitionNode).selectionSet.selections;
}
