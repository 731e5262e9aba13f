import fc from 'fast-check';
import {
  getOperationAST,
  parse,
  print,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
  type FieldNode,
  type GraphQLFieldResolver,
  type OperationDefinitionNode,
} from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { makeExecutableSchema, personPages } from '../service/lists.ts';
import { json } from '../service/replies.ts';
import { randomOperation, vocabularyOf } from '../judge/operation.ts';
import { randomRuns, usually } from '../support/random/random-runs.ts';
import { sideBySide } from './side-by-side.ts';

const RUNS = randomRuns(150);

/** A field that the service does not get at the root, because the gateway answers it itself. */
const OWN = 'type: __type(name: "Shop") { name }';
const [OWN_FIELD] = (parse(`{ ${OWN} }`).definitions[0] as OperationDefinitionNode).selectionSet
  .selections as readonly [FieldNode];

test.each([
  ['a list', '{ allPersons @tag(name: "x") { id } }'],
  ['a connection', '{ seen personsConnection @tag(name: "x") { nodes { id } } }'],
  [
    'a fragment around fragments around a list, which are also spread without it',
    '{ ...G ...F } fragment F on Query { ...G @tag(name: "x") } fragment G on Query { ...H } fragment H on Query { allPersons { id } }',
  ],
  ['the edges', '{ personsConnection { edges @tag(name: "x") { node { id } } } }'],
  [
    'a fragment in an edge',
    '{ personsConnection { edges { ...F } } } fragment F on PersonEdge @tag(name: "x") { node { id } }',
  ],
])('a custom directive on %s that the gateway adds is refused', async (_, query) => {
  const world = await sideBySide({ schema: SCHEMA });
  const { data, errors } = await world.through({ query });
  expect(data).toBeUndefined();
  expect(errors?.join()).toMatch(/BAD_USER_INPUT.*@tag cannot be used at /);
  expect(world.gateway.service.received).toEqual([]);
});

test(
  'random operations of custom directives, and of fields that the gateway answers, have the answers of the service',
  async () => {
    const world = await sideBySide({ schema: SCHEMA });
    const query = SCHEMA.getQueryType();
    const sentTexts: string[] = [];
    const words = vocabularyOf(SCHEMA, (name) => (name === 'Int' ? 1 : '1'));
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const operation = randomOperation(words, g);
        const document = parse(operation.query);
        fc.pre(validate(SCHEMA, document).length === 0);
        // `seen` sees all fragments of the document, those of other operations too.
        fc.pre(getOperationAST(document) !== null);
        const types = new TypeInfo(SCHEMA);
        const mixed = visit(
          document,
          visitWithTypeInfo(types, {
            SelectionSet: (node) => {
              if (types.getParentType() !== query || g(fc.boolean)) return undefined;
              return { ...node, selections: [...node.selections, OWN_FIELD] };
            },
          }),
        );
        const { sent } = await world.expectSame({ ...operation, query: print(mixed) });
        sentTexts.push(...sent);
      }),
      { numRuns: RUNS, maxSkipsPerRun: 400, unbiased: true, endOnFailure: true },
    );
    const directed = sentTexts.filter((text) => /@(?:spread|inline|fragment|tag)/.test(text));
    expect(directed.length).toBeGreaterThan(usually(10));
  },
  RUNS * 2_000,
);

test('a mutation with null for a condition is not sent, because some services take null for false', async () => {
  await using gateway = await startGatewayOverService(
    {},
    { snapshot: 'type Query { a: Int } type Mutation { put: Int }', config: { mutations: 'all' } },
  );
  gateway.service.answer(json({ data: { put: 1, again: 2 } }));
  const query = 'mutation ($n: Boolean = true) { put again: put @skip(if: $n) }';
  const { data, errors } = await gateway.ask(query, { n: null });
  expect([data ?? null, errors]).toEqual([null, [expect.anything()]]);
  expect(gateway.service.received).toHaveLength(0);
  expect((await gateway.ask(query, { n: false })).data).toEqual({ put: 1, again: 2 });
});

/** The custom directives that reached the service in the operation and its fragments. */
const seen = (...[, , , info]: Parameters<GraphQLFieldResolver<never, unknown, never>>) => {
  const { operation, fragments } = info;
  const conditions = new Set<string>();
  for (const node of [operation, ...Object.values(fragments)]) {
    visit(node, {
      Directive: (directive) => {
        if (!['skip', 'include'].includes(directive.name.value)) conditions.add(print(directive));
      },
    });
  }
  return [...conditions].toSorted().join(' ');
};

const SCHEMA = makeExecutableSchema(
  `
  directive @inContext(country: String) on QUERY | MUTATION
  directive @tag(name: String!) repeatable on
    FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT | FRAGMENT_DEFINITION | VARIABLE_DEFINITION
  directive @spread(name: String!) on FRAGMENT_SPREAD
  directive @inline(name: String!) on INLINE_FRAGMENT
  directive @fragment(name: String!) on FRAGMENT_DEFINITION
  type Query { seen(first: Int): String shop: Shop persons(first: Int, after: ID): Persons! }
  type Mutation { seen: String }
  type Shop { seen: String name: String query: Query }
  type Person { id: ID! }
  type Persons { items: [Person!]! pageInfo: Position! }
  type Position { hasNextPage: Boolean! endCursor: String }`,
  {
    Query: { seen, shop: () => ({ name: 'Shop' }), persons: personPages(['1', '2']) },
    Mutation: { seen },
    Shop: { seen, query: () => ({}) },
  },
);
