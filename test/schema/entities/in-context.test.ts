import {
  getDirectiveValues,
  Kind,
  type GraphQLResolveInfo,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { expect, test } from 'vitest';
import { sideBySide } from '../../same/side-by-side.ts';
import {
  makeExecutableSchema,
  pageOf,
  PERSONS,
  type PageArgs,
} from '../../support/imitations/executable-schema.ts';

/*
 * Like Shopify's `@inContext`, a directive of the operation chooses which list the service returns. The service has no
 * field for one person, so the gateway finds a person in the list.
 */

const BY_ID = 'person(id: "1") { name }';
const ENTITIES = '_entities(representations: [{ __typename: "Person", id: "1" }])';

test.each([
  ['without the directive', 'query', 'Somebody'],
  ['with the directive', 'query @inContext(country: "FR")', 'Quelqu’un'],
  ['with a variable in it', 'query ($in: String! = "DE") @inContext(country: $in)', 'Jemand'],
])('a record is looked up in the list that an operation %s reads', async (_, query, name) => {
  const world = await startContexts();
  expect(await world.ask(`${query} { ${BY_ID} }`)).toEqual({ person: { name } });
  const entities = await world.ask(`${query} { ${ENTITIES} { ... on Person { name } } }`);
  expect(entities).toEqual({ _entities: [{ name }] });
});

test('a record that only an operation with a directive can see is found by it, and by no other', async () => {
  const world = await startContexts();
  const only = 'person(id: "only FR") { name }';
  for (const [query, person] of [
    ['query', null],
    ['query @inContext(country: "FR")', { name: 'Quelqu’un' }],
    ['query @inContext(country: "DE")', null],
    ['query', null],
  ] as const) {
    expect(await world.ask(`${query} { ${only} }`)).toEqual({ person });
  }
});

test('what a drain remembers of positions serves lookups with the same directives, and no others', async () => {
  const world = await startContexts();
  const drained = '{ allPersons { id } }';
  const found = '{ person(id: "1") { name } }';
  await world.ask(`query @inContext(country: "FR") ${drained}`);
  const walked = world.sent();
  const query = 'query ($in: String!) @inContext(country: $in)';
  await world.ask(`${query} ${found}`, { in: 'FR' });
  expect(world.sent()).toBe(walked + 1);
  await world.ask(`${query} ${found}`, { in: 'DE' });
  expect(world.sent()).toBeGreaterThan(walked + 2);
});

test.each(['person(id: "nobody") { name }', 'personsConnection { totalCount }'])(
  'what is remembered for one default of a variable in a directive is not used for another: %s',
  async (field) => {
    const world = await startContexts();
    const inContext = (country: string) =>
      world.ask(`query ($in: String! = "${country}") @inContext(country: $in) { ${field} }`);
    const french = await inContext('FR');
    const sent = world.sent();
    expect(await inContext('FR')).toEqual(french);
    expect(world.sent()).toBeLessThan(sent + 3);
    const again = world.sent();
    await inContext('DE');
    expect(world.sent()).toBeGreaterThan(again + 2);
  },
);

test.each([
  ['allPersons', '{ id }', (list: unknown) => (list as unknown[]).length],
  ['personsConnection', '{ totalCount }', (list: unknown) => (list as Total).totalCount],
] as const)(
  'a directive on %s is sent with each of its pages, and makes another list',
  async (field, selection, count) => {
    const world = await startContexts();
    const query = `query ($in: String! = "DE", $yes: Boolean = true) {
      plain: ${field} ${selection}
      french: ${field} @include(if: $yes) @inContext(country: "FR") ${selection}
      german: ${field} @inContext(country: $in) ${selection}
      ...F
    }
    fragment F on Query { plain: ${field} @skip(if: false) ${selection} }`;
    for (const [variables, german] of [
      [{}, 150],
      [{ in: 'FR' }, 151],
    ] as const) {
      const data = (await world.ask(query, variables)) as Record<string, unknown>;
      const counts = Object.entries(data).map(([key, list]) => [key, count(list)]);
      expect(Object.fromEntries(counts)).toEqual({ plain: 150, french: 151, german });
    }
  },
);

interface Total {
  readonly totalCount: number;
}

/** Where a directive can be that is for one field of the root. */
const PLACES: readonly (readonly [place: string, write: WriteSelection])[] = [
  ['the field', ({ on, field, below }) => `{ ${field} ${on} ${below} }`],
  [
    'a spread',
    ({ on, field, below, name }) =>
      `{ ...${name} ${on} } fragment ${name} on Query { ${field} ${below} }`,
  ],
  [
    'a fragment',
    ({ on, field, below, name }) =>
      `{ ...${name} } fragment ${name} on Query ${on} { ${field} ${below} }`,
  ],
  ['an inline fragment', ({ on, field, below }) => `{ ... ${on} { ${field} ${below} } }`],
];

type WriteSelection = (parts: {
  readonly on: string;
  readonly field: string;
  readonly below: string;
  /** Of a fragment. */
  readonly name: string;
}) => string;

const IN = '@inContext(country: $in)';

test.each(PLACES)(
  'a record is looked up in the list that a directive on %s chooses',
  async (_, write) => {
    const world = await startContexts();
    const person = { field: 'person(id: "only FR")', below: '{ name }', name: 'F' };
    const query = `query ($in: String! = "FR") ${write({ on: IN, ...person })}`;
    const french = { person: { name: 'Quelqu’un' } };
    expect(await world.ask(query)).toEqual(french);
    expect(await world.ask(query, { in: 'DE' })).toEqual({ person: null });
    expect(await world.ask(write({ on: '', ...person }))).toEqual({ person: null });
    expect(await world.ask(query, { in: 'FR' })).toEqual(french);
  },
);

test.each(PLACES)(
  'what a drain remembers of positions serves lookups with the same directives on %s, and no others',
  async (_, write) => {
    const world = await startContexts();
    const french = '@inContext(country: "FR")';
    await world.ask(write({ on: french, field: 'allPersons', below: '{ id }', name: 'F' }));
    const walked = world.sent();
    const person = { field: 'person(id: "1")', below: '{ name }', name: 'G' };
    const query = `query ($in: String!) ${write({ on: IN, ...person })}`;
    await world.ask(query, { in: 'FR' });
    expect(world.sent()).toBe(walked + 1);
    await world.ask(query, { in: 'DE' });
    expect(world.sent()).toBeGreaterThan(walked + 2);
  },
);

test.each(PLACES)(
  'a cursor belongs to the list that a directive on %s chooses',
  async (_, write) => {
    const world = await startContexts();
    const page = (name: string) =>
      `query ($in: String = "FR", $after: String) ${write({
        on: IN,
        field: 'people: personsConnection(first: 1, after: $after)',
        below: '{ totalCount nodes { id } pageInfo { endCursor } }',
        name,
      })}`;
    const first = (await world.ask(page('F'))) as Page;
    expect(first.people).toMatchObject({ totalCount: 151, nodes: [{ id: 'only FR' }] });
    const after = first.people.pageInfo.endCursor;
    const second = (await world.ask(page('G'), { after })) as Page;
    expect(second.people).toMatchObject({ totalCount: 151, nodes: [{ id: '150' }] });
    const { errors } = await world.through({ query: page('F'), variables: { in: 'DE', after } });
    expect(errors?.join()).toContain('CURSOR_INVALID');
  },
);

interface Page {
  readonly people: { readonly pageInfo: { readonly endCursor: string } };
}

const NAMES: Readonly<Record<string, string>> = { FR: 'Quelqu’un', DE: 'Jemand' };

/** A list of 150 persons, and of one more in the context FR. */
async function startContexts() {
  const schema = makeExecutableSchema(
    `directive @inContext(country: String!) on
       QUERY | FIELD | FRAGMENT_SPREAD | FRAGMENT_DEFINITION | INLINE_FRAGMENT
     type Person { id: ID! name: String! }
     ${PERSONS}`,
    {
      Query: {
        persons: (_: unknown, args: PageArgs, __: unknown, info: GraphQLResolveInfo) => {
          const country = countryOf(info);
          const name = NAMES[country] ?? 'Somebody';
          const ids = Array.from({ length: 150 }, (___, at) => String(150 - at));
          if (country === 'FR') ids.unshift('only FR');
          return pageOf(
            ids.map((id) => ({ id, name })),
            args,
          );
        },
      },
    },
  );
  const world = await sideBySide({ schema });
  return {
    through: world.through,
    ask: async (query: string, variables?: Record<string, unknown>) => {
      const { data, errors } = await world.through({ query, variables });
      expect(errors).toBeUndefined();
      return JSON.parse(data!) as unknown;
    },
    /** Requests so far. */
    sent: () => world.gateway.upstream.received.length,
  };
}

/** Of the operation, or of anything at its root: the gateway requests each list by itself. */
function countryOf({ schema, operation, fragments, variableValues }: GraphQLResolveInfo): string {
  const directive = schema.getDirective('inContext')!;
  const nodes = [operation, ...Object.values(fragments)];
  const values = nodes
    .flatMap((node) => [node, ...selectionsIn(node.selectionSet)])
    .map((node) => getDirectiveValues(directive, node, variableValues)?.['country']);
  return values.find((country) => typeof country === 'string') ?? '';
}

function selectionsIn({ selections }: SelectionSetNode): readonly SelectionNode[] {
  return selections.flatMap((one) =>
    one.kind === Kind.INLINE_FRAGMENT ? [one, ...selectionsIn(one.selectionSet)] : [one],
  );
}
