import fc from 'fast-check';
import {
  execute,
  getDirectiveValues,
  getOperationAST,
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  Kind,
  parse,
  print,
  validate,
  visit,
  type DirectiveNode,
  type GraphQLFieldResolver,
  type GraphQLResolveInfo,
  type SelectionNode,
} from 'graphql';
import { expect, test } from 'vitest';
import { encodeGlobalId } from '../../src/answers/global-id.ts';
import { all, putTogether } from '../support/clients/multipart.ts';
import {
  makeExecutableSchema,
  pageOf,
  PERSONS,
  type PageArgs,
} from '../support/imitations/executable-schema.ts';
import { printExactly } from './exact-json.ts';
import { randomDocument } from '../support/random/random-operation.ts';
import { isUsual, randomRuns } from '../support/random/random-runs.ts';
import { sideBySide, type SentOperation } from './side-by-side.ts';

/*
 * The service returns with each record the directives that it got around the field which returned it. So does a schema
 * with the derived fields, which graphql-js executes here: callers must not see a difference.
 */

const RUNS = randomRuns(150);
const PERSON = encodeGlobalId({ type: 'Person', id: '1' });
const SHOP = encodeGlobalId({ type: 'Shop', id: '1' });

const FIELDS = [
  'allPersons { around }',
  'personsConnection { nodes { around } edges { node { around } } }',
  'personsConnection(last: 1) { nodes { around } }',
  'person(id: "1") { around }',
  `node(id: "${PERSON}") { ... on Person { around } }`,
  `node(id: "${SHOP}") { ... on Shop { around } }`,
  `nodes(ids: ["${SHOP}", "${PERSON}"]) { ... on Shop { around } ... on Person { around } }`,
  `_entities(representations: [{ __typename: "Shop", id: "1" }, { __typename: "Person", id: "1" }])
   { ... on Shop { around } ... on Person { around } }`,
];

const PLACES = [
  ['the field', '{ FIELD }', '@field(name: "x") @tag(name: "y")'],
  ['a spread', '{ ...F @spread(name: "x") } fragment F on Query { FIELD }'],
  ['a fragment', '{ ...F } fragment F on Query @fragment(name: "x") { FIELD }'],
  ['an inline fragment', '{ ... @inline(name: "x") { FIELD } }'],
  ['a typed inline fragment', '{ ... on Query @inline(name: "x") { FIELD } }'],
  [
    'fragments in each other',
    `query @inContext(country: "FR") { ...F @spread(name: "x") @tag(name: "t") seen }
     fragment F on Query @fragment(name: "f") { ... @inline(name: "i") { ...G @spread(name: "y") } }
     fragment G on Query @fragment(name: "g") { seen ... { FIELD } ...H @spread(name: "z") }
     fragment H on Query @fragment(name: "h") { seen }`,
    '@field(name: "x")',
  ],
] as const;

test.each(
  FIELDS.flatMap((field) =>
    PLACES.map(([place, query, own = '']) => ({ field, place, query, own })),
  ),
)('a directive on $place around $field reaches the service', async ({ field, query, own }) => {
  const world = await derivedBesideService();
  const [, name, rest] = /^(\w+(?:\(.*?\))?)( ?\n?.*)$/s.exec(field)!;
  const written = query.replace('FIELD', `${name} ${own} ${rest}`);
  const sent = await world.expectSame({ query: written });
  const lookups = sent.filter((body) => /persons|shop/.test(body));
  expect(lookups.length).toBeGreaterThan(0);
  const directive = /@(spread|fragment|inline|field)/.exec(written)![0];
  for (const body of lookups) expect(body).toContain(directive);
});

test.each([
  [
    'a spread that is skipped',
    `query ($no: Boolean = false) {
     ...F @include(if: $no) @spread(name: "x") ...F @skip(if: $no) @spread(name: "y") }
   fragment F on Query { FIELD }`,
  ],
  [
    'fragments that are skipped',
    `query ($yes: Boolean = true) {
     ... @skip(if: $yes) @inline(name: "x") { FIELD }
     ... @include(if: $yes) { FIELD ... @inline(name: "y") { FIELD @skip(if: $yes) seen } } }`,
  ],
  [
    'several places',
    `{ FIELD ...F @spread(name: "x") ...F @spread(name: "y") ... @inline(name: "i") { FIELD } ...G }
   fragment F on Query @fragment(name: "f") { FIELD }
   fragment G on Query { ...F FIELD @field(name: "x") FIELD @field(name: "y") }`,
  ],
  [
    'a fragment that is used below the root too',
    `{ ...F @spread(name: "x") ...G }
   fragment G on Query { one { query { ...S @spread(name: "y") } } }
   fragment F on Query @fragment(name: "f") { FIELD ...S @spread(name: "z") }
   fragment S on Query { seen }`,
  ],
])('directives around derived fields have their meaning at %s', async (_, query) => {
  const world = await derivedBesideService();
  for (const field of ['allPersons', 'person(id: "1")']) {
    const written = query.replaceAll(/FIELD((?: @\w+\(.*?\))*)/g, `${field}$1 { around }`);
    await world.expectSame({ query: written });
  }
});

test('a directive around one derived field is not sent for another one', async () => {
  const world = await derivedBesideService();
  const query = `{ ...F @spread(name: "x") a: allPersons { around } b: person(id: "1") { around }
      c: person(id: "1") @field(name: "c") { around } d: person(id: "1") @field(name: "d") { around }
      s: node(id: "${SHOP}") { ... on Shop { around } } }
    fragment F on Query {
      e: allPersons { around } f: person(id: "1") { around } t: node(id: "${SHOP}") { ... on Shop { around } }
    }`;
  await expect(world.expectSame({ query })).resolves.not.toHaveLength(0);
});

test('fragments without directives of the service are not sent for derived fields', async () => {
  const plain = await derivedBesideService();
  const bare = await plain.expectSame({
    query: '{ allPersons { around id } person(id: "1") { around } }',
  });
  const world = await derivedBesideService();
  const query = `query ($yes: Boolean = true) {
      ...F @include(if: $yes) ... @tag(name: "x") { __typename } }
    fragment F on Query { allPersons { around } ... on Query { allPersons { id } person(id: "1") { around } } ...G }
    fragment G on Query @fragment(name: "g") { seen }`;
  const sent = await world.expectSame({ query });
  const derived = sent.filter((body) => body.includes('persons'));
  expect(derived).toEqual(bare);
});

test('a variable in a directive on a fragment makes another list', async () => {
  const world = await derivedBesideService();
  const query = `query ($name: String! = "a", $on: Boolean = true) { ...F @spread(name: $name) }
    fragment F on Query { allPersons { around } person(id: "1") @field(name: $name) @include(if: $on) { around } }`;
  for (const name of [undefined, 'b', 'a']) await world.expectSame({ query, variables: { name } });
  expect(await world.expectSame({ query, variables: { name: 'c', on: false } })).toHaveLength(1);
});

test('directives around a lookup of many records are sent with each batch of them', async () => {
  const world = await derivedBesideService();
  const ids = Array.from({ length: 120 }, (_, at) => String(at));
  const query = `query ($them: [_Any!]!, $name: String!) { ...F @spread(name: $name) }
    fragment F on Query @fragment(name: "f") {
      _entities(representations: $them) @field(name: $name) { ... on Shop { around } }
    }`;
  const them = ids.map((id) => ({ __typename: 'Shop', id }));
  const sent = await world.expectSame({ query, variables: { them, name: 'x' } });
  expect(sent).toHaveLength(3);
  for (const body of sent) expect(body).toMatch(/@spread.*@fragment.*@field/);
});

test.each([
  '{ ...F @defer @spread(name: "x") seen } fragment F on Query @fragment(name: "f") { allPersons { around } }',
  '{ ... @defer @inline(name: "i") { person(id: "1") @field(name: "f") { around } } seen }',
  '{ ...F @spread(name: "x") } fragment F on Query { allPersons @stream @field(name: "f") { around } seen }',
  `{ ...F @spread(name: "x") ... @defer { ...F @spread(name: "y") } }
   fragment F on Query { personsConnection { nodes @stream { around } } }`,
])(
  'directives around derived fields reach the service beside @defer and @stream: %s',
  async (query) => {
    const world = await derivedBesideService();
    const parts = await all(world.gateway, query);
    expect(parts.length).toBeGreaterThan(1);
    expect(parts.flatMap(({ errors = [] }) => errors)).toEqual([]);
    const { data } = await world.execute({ query: query.replaceAll(/@(defer|stream) /g, '') });
    expect(putTogether(parts)).toEqual(data);
  },
);

test('directives around derived fields reach the service with a prefix', async () => {
  const config = { schemaPrefix: 'Recruiting' };
  const world = await sideBySide({ schema: serviceSchema(), config });
  const query = `{ ...F @spread(name: "x") }
    fragment F on Query @fragment(name: "f") {
      recruitingAllPersons { ...P } recruitingPerson(id: "1") @field(name: "y") { ...P }
    }
    fragment P on RecruitingPerson { around }`;
  const { data, errors } = await world.through({ query });
  expect(errors).toBeUndefined();
  const person = {
    around: ' | FragmentSpread @spread(name: "x"); FragmentDefinition @fragment(name: "f"); ',
  };
  expect(JSON.parse(data!)).toEqual({
    recruitingAllPersons: [person],
    recruitingPerson: { around: `${person.around}Field @field(name: "y"); ` },
  });
});

test(
  'random operations of custom directives around derived fields have the answers of the service',
  async () => {
    const world = await derivedBesideService();
    let derived = 0;
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const asked = randomDocument(world.served, g, { scalar: (name) => VALUES[name] ?? 'v' });
        const document = parse(asked.query);
        fc.pre(validate(world.served, document).length === 0);
        fc.pre(getOperationAST(document) !== null);
        // Derived fields cannot be selected below the root, and the service has no Node to send a fragment on.
        fc.pre(!/\bone\b|on Node\b/.test(asked.query));
        const { errors = [] } = await world.through(asked);
        fc.pre(!errors.join('').includes('at most 100 are allowed'));
        // Sent again: by now the lists are known.
        const sent = await world.expectSame(asked);
        derived += sent.filter((body) => /fragment _rsPart|@field/.test(body)).length;
      }),
      { numRuns: RUNS, maxSkipsPerRun: 400, unbiased: true, endOnFailure: true },
    );
    expect(derived).toBeGreaterThan(isUsual ? RUNS / 10 : 0);
  },
  RUNS * 2_000,
);

const VALUES: Readonly<Record<string, unknown>> = {
  ID: PERSON,
  Int: 1,
  _Any: { __typename: 'Shop', id: '1' },
};

/** The gateway in front of the service, and the derived fields as graphql-js answers them. */
async function derivedBesideService() {
  const served = servedSchema();
  const world = await sideBySide({ schema: serviceSchema(), config: { nodeInterface: true } });
  const answerOf = async ({ query, variables, operationName }: SentOperation) => {
    const document = parse(query);
    expect(validate(served, document)).toEqual([]);
    const variableValues = JSON.parse(JSON.stringify(variables ?? {})) as Record<string, unknown>;
    return execute({ schema: served, document, variableValues, operationName });
  };
  return {
    gateway: world.gateway,
    through: world.through,
    served,
    execute: answerOf,
    /** @returns the bodies of the requests that the gateway sent */
    expectSame: async (asked: SentOperation) => {
      const before = world.gateway.upstream.received.length;
      const through = await world.through(asked);
      const own = await answerOf(asked);
      const context = `${asked.query} ${JSON.stringify(asked.variables)}`;
      expect([own.errors, through.errors], context).toEqual([undefined, undefined]);
      expect(JSON.parse(through.data!), context).toEqual(JSON.parse(JSON.stringify(own.data)));
      return world.gateway.upstream.received.slice(before).map(({ body }) => body);
    },
  };
}

/**
 * Returns the directives of the operation, and those on each way to this field from the root: on the fragments around
 * it, and on itself.
 */
function around({ operation, fragments, path, variableValues }: GraphQLResolveInfo): string {
  const ways = new Set<string>();
  collect(operation.selectionSet.selections, '');
  return [marksOf(operation), ...[...ways].toSorted()].join(' | ');

  function collect(selections: readonly SelectionNode[], way: string): void {
    for (const selection of selections) {
      if (!isIncluded(selection)) continue;
      const here = way + marksOf(selection);
      if (selection.kind === Kind.FIELD) {
        if ((selection.alias ?? selection.name).value === path.key) ways.add(here);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        collect(selection.selectionSet.selections, here);
      } else {
        const fragment = fragments[selection.name.value]!;
        collect(fragment.selectionSet.selections, here + marksOf(fragment));
      }
    }
  }

  function isIncluded(selection: SelectionNode): boolean {
    const skip = getDirectiveValues(GraphQLSkipDirective, selection, variableValues);
    const include = getDirectiveValues(GraphQLIncludeDirective, selection, variableValues);
    return skip?.['if'] !== true && include?.['if'] !== false;
  }

  function marksOf({ kind, directives = [] }: Directed): string {
    const own = directives.filter(({ name }) => !['skip', 'include'].includes(name.value));
    return own.length > 0 ? `${kind} ${own.map(printed).join(' ')}; ` : '';
  }

  function printed(directive: DirectiveNode): string {
    return print(
      visit(directive, {
        Variable: ({ name }) => ({
          kind: Kind.ENUM,
          value: printExactly(variableValues[name.value]),
        }),
      }),
    );
  }
}

interface Directed {
  readonly kind: string;
  readonly directives?: readonly DirectiveNode[] | undefined;
}

type Resolver = GraphQLFieldResolver<unknown, unknown>;

const shown =
  (type: string): Resolver =>
  (...[, , , info]) => ({ __typename: type, id: '1', around: around(info) });

/** The service's schema. Without a field for one person, they are found in their list. */
function serviceSchema() {
  return makeExecutableSchema(
    `${DIRECTIVES}
     type Person { id: ID! around: String! }
     type Shop { id: ID! around: String! }
     ${PERSONS}
     extend type Query { ${OWN} shop(id: ID!): Shop }
     type One { query: Query! }`,
    {
      Query: {
        ...OWN_RESOLVERS,
        shop: shown('Shop'),
        persons: (_: unknown, args: PageArgs, __: unknown, info: GraphQLResolveInfo) =>
          pageOf([{ id: '1', around: around(info) }], args),
      },
    },
  );
}

/** What the gateway makes of it, as far as operations here use it. */
function servedSchema() {
  const person = shown('Person');
  const known: Readonly<Record<string, Resolver>> = { [PERSON]: person, [SHOP]: shown('Shop') };
  const entities: Readonly<Record<string, Resolver>> = { Person: person, Shop: shown('Shop') };
  const edges: Resolver = (...given) => ({
    nodes: [person(...given)],
    edges: [{ node: person(...given) }],
  });
  return makeExecutableSchema(
    `${DIRECTIVES}
     scalar _Any
     interface Node { id: ID! }
     type Person implements Node { id: ID! around: String! }
     type Shop implements Node { id: ID! around: String! }
     union _Entity = Person | Shop
     type PersonConnection { nodes: [Person!]! edges: [PersonEdge!]! }
     type PersonEdge { node: Person! }
     type Query {
       ${OWN}
       allPersons: [Person!]!
       personsConnection(last: Int): PersonConnection!
       person(id: ID!): Person
       node(id: ID!): Node
       nodes(ids: [ID!]!): [Node]!
       _entities(representations: [_Any!]!): [_Entity]!
     }
     type One { query: Query! }`,
    {
      Person: { id: () => PERSON },
      Shop: { id: () => SHOP },
      Query: {
        ...OWN_RESOLVERS,
        allPersons: (...given: Parameters<Resolver>) => [person(...given)],
        personsConnection: edges,
        person,
        node: (...given: Parameters<Resolver>) => known[(given[1] as { id: string }).id]!(...given),
        nodes: (...given: Parameters<Resolver>) =>
          (given[1] as { ids: string[] }).ids.map((id) => known[id]!(...given)),
        _entities: (...given: Parameters<Resolver>) =>
          (given[1] as { representations: { __typename: string }[] }).representations.map(
            ({ __typename: type }) => entities[type]!(...given),
          ),
      },
    },
  );
}

const DIRECTIVES = `
  directive @inContext(country: String) on QUERY
  directive @tag(name: String!) repeatable on
    FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT | FRAGMENT_DEFINITION
  directive @field(name: String) on FIELD
  directive @spread(name: String!) on FRAGMENT_SPREAD
  directive @inline(name: String!) on INLINE_FRAGMENT
  directive @fragment(name: String!) on FRAGMENT_DEFINITION`;

/** Fields that the service answers itself. */
const OWN = 'seen: String one: One';

const OWN_RESOLVERS = {
  seen: (...[, , , info]: Parameters<Resolver>) => around(info),
  one: () => ({ query: {} }),
};
