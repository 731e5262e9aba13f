import {
  execute,
  parse,
  print,
  printSchema,
  visit,
  type GraphQLFieldResolver,
  type GraphQLSchema,
} from 'graphql';
import { serveSnapshot } from '../../src/schema/served/served-schema.ts';
import { fullService } from '../service/full.ts';
import { makeExecutableSchema, personPages } from '../service/lists.ts';
import { resultsSchema, richSchema } from '../service/made.ts';
import type { Answer, Ask } from './cursors.ts';
import { vocabularyOf, type Vocabulary } from './operation.ts';
import { createOracle } from './oracle.ts';

/** A service whose records never change, and what the gateway makes of its schema. */
export interface World extends Vocabulary {
  /** That of the service, executable. */
  readonly schema: GraphQLSchema;
  readonly snapshot: string;
  readonly prefix: string | undefined;
  /** Answers without the gateway. */
  readonly ask: Ask;
}

/** Nullable records, unions, interfaces, failing fields, errors as data, names that clash, directives of its own. */
export const WORLDS: Readonly<Record<string, () => World>> = {
  full: fullWorld,
  rich: () => worldOf(richSchema()),
  'rich with a prefix': () => worldOf(richSchema(), 'Recruiting'),
  results: () => worldOf(resultsSchema()),
  'results that are errors': () => worldOf(resultsSchema({ managers: false })),
  directives: () => ({
    ...vocabularyOf(DIRECTED),
    schema: DIRECTED,
    snapshot: printSchema(DIRECTED),
    prefix: undefined,
    ask: (operation) => executeOver(DIRECTED, operation),
  }),
};

export function fullWorld(): World {
  return worldOf(fullService().schema);
}

function worldOf(schema: GraphQLSchema, prefix?: string): World {
  const snapshot = printSchema(schema);
  const served = serveSnapshot(snapshot, { ...SETTINGS, schemaPrefix: prefix });
  const lists = createOracle(schema, served);
  return { schema, snapshot, prefix, served, ask: (operation) => executeOver(lists, operation) };
}

const SETTINGS = {
  schemaPath: 'upstream.graphql',
  mutations: 'off',
  connectionMax: 500,
  drainMaxItems: 100_000,
  totalCountSeconds: 300,
} as const;

async function executeOver(
  schema: GraphQLSchema,
  { query, variables, operationName }: Parameters<Ask>[0],
): Promise<Answer> {
  const document = parse(query);
  const result = await execute({ schema, document, variableValues: variables, operationName });
  return JSON.parse(JSON.stringify(result)) as Answer;
}

/** The custom directives that reached the service, without those of an operation that was not selected. */
const seen = (...[, , , info]: Parameters<GraphQLFieldResolver<never, unknown, never>>) => {
  const directives = new Set<string>();
  const fragments = Object.values(info.fragments).filter(
    ({ name }) => !name.value.startsWith('Fz'),
  );
  for (const node of [info.operation, ...fragments]) {
    visit(node, {
      Directive: (directive) => {
        const isCondition = ['skip', 'include'].includes(directive.name.value);
        if (!isCondition) directives.add(print(directive));
      },
    });
  }
  return [...directives].toSorted().join(' ');
};

const DIRECTED = makeExecutableSchema(
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
