import { getDirectiveValues, type GraphQLResolveInfo } from 'graphql';
import { expect, test } from 'vitest';
import { sideBySide } from '../../same/side-by-side.ts';
import {
  makeExecutableSchema,
  pageOf,
  PERSONS,
  type PageArgs,
} from '../../support/imitations/honest.ts';

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

test('the page index of a drain serves lookups with the same directives, and no others', async () => {
  const world = await startContexts();
  const drained = '{ allPersons { id } }';
  const lookup = '{ person(id: "1") { name } }';
  await world.ask(`query @inContext(country: "FR") ${drained}`);
  const walked = world.sent();
  const query = 'query ($in: String!) @inContext(country: $in)';
  await world.ask(`${query} ${lookup}`, { in: 'FR' });
  expect(world.sent()).toBe(walked + 1);
  await world.ask(`${query} ${lookup}`, { in: 'DE' });
  expect(world.sent()).toBeGreaterThan(walked + 2);
});

test.each(['person(id: "nobody") { name }', 'personsConnection { totalCount }'])(
  'a page index for one default of a variable in a directive is not used for another: %s',
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
  'a directive of the operation is sent with each page of %s, and makes another list',
  async (field, selection, count) => {
    const world = await startContexts();
    const query = `query ($in: String! = "DE") @inContext(country: $in) { ${field} ${selection} }`;
    for (const [variables, expected] of [
      [{}, 150],
      [{ in: 'FR' }, 151],
      [{ in: 'DE' }, 150],
    ] as const) {
      const data = (await world.ask(query, variables)) as Record<string, unknown>;
      expect(count(data[field])).toBe(expected);
    }
  },
);

interface Total {
  readonly totalCount: number;
}

test('a cursor belongs to the list that a directive of the operation chooses', async () => {
  const world = await startContexts();
  const query = `query ($in: String! = "FR", $after: String) @inContext(country: $in) {
    people: personsConnection(first: 1, after: $after) {
      totalCount nodes { id } pageInfo { endCursor }
    }
  }`;
  const first = (await world.ask(query)) as Page;
  expect(first.people).toMatchObject({ totalCount: 151, nodes: [{ id: 'only FR' }] });
  const after = first.people.pageInfo.endCursor;
  const second = (await world.ask(query, { after })) as Page;
  expect(second.people).toMatchObject({ totalCount: 151, nodes: [{ id: '150' }] });
  const { errors } = await world.through({ query, variables: { in: 'DE', after } });
  expect(errors?.join()).toContain('CURSOR_INVALID');
});

interface Page {
  readonly people: { readonly pageInfo: { readonly endCursor: string } };
}

const NAMES: Readonly<Record<string, string>> = { FR: 'Quelqu’un', DE: 'Jemand' };

/** A list of 150 persons, and of one more in the context FR. */
async function startContexts() {
  const schema = makeExecutableSchema(
    `directive @inContext(country: String!) on QUERY
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

function countryOf({ schema, operation, variableValues }: GraphQLResolveInfo): string {
  const directive = schema.getDirective('inContext')!;
  const country = getDirectiveValues(directive, operation, variableValues)?.['country'];
  return typeof country === 'string' ? country : '';
}
