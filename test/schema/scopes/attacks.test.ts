import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everyHook } from '../../support/gateway/every-hook.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { as, keys, peopleSdl, peopleService, scopes, scopesOfList, SECRET } from './people.ts';

/** Each operation reads personal data on another way. */
const WAYS: readonly [way: string, query: string, variables?: Record<string, unknown>][] = [
  ['a field of the service', '{ me { id email } }'],
  ['an object with personal data below it', '{ me { contacts { city } } }'],
  ['a non-null field', '{ me { id phone } }'],
  ['a page', '{ people(first: 3) { items { id email } } }'],
  [
    'a fragment in a fragment',
    '{ me { ...F } } fragment F on Person { ...G } fragment G on Person { email }',
  ],
  ['an interface', '{ named { nick } }'],
  ['a union', '{ anything { ... on Person { email } ... on Team { name } } }'],
  ['a list that is drained', '{ allPeople(limit: 3) { id email } }'],
  ['edges', '{ peopleConnection(first: 3) { edges { cursor node { email } } } }'],
  ['a record by its id', '{ person(id: "p2") { id email } }'],
  ['a nested page', '{ team(id: "t1") { members { items { email } } } }'],
  ['an entity', entities('... on Person { id email }'), { of: [ref('Person', 'p2')] }],
  [
    'a condition that a variable decides',
    'query ($yes: Boolean!) { me { email @include(if: $yes) } }',
    { yes: true },
  ],
  ['a type', '{ salaries { items { id } } }'],
  ['a type whose name is all that is read', '{ me { salary { __typename } } }'],
  ['the number of records of a type', '{ salariesConnection { totalCount } }'],
  [
    'an entity of a type',
    entities('... on Salary { amount }'),
    { of: [ref('Salary', 'SECRET-s1')] },
  ],
  ['the result of a mutation', 'mutation { rename(id: "p1", name: "Bo") { name email } }'],
];

const LIST_WAYS: typeof WAYS = [
  ['a list field', '{ secrets { items { text } } }'],
  ['a list field, drained', '{ allSecrets { text } }'],
  ['a list field, as a connection', '{ secretsConnection { edges { cursor } } }'],
  ['a record that is looked up in such a list', '{ note(id: "n1") { text } }'],
  [
    'an entity that is looked up in such a list',
    entities('... on Note { text }'),
    { of: [ref('Note', 'n1')] },
  ],
];

/** Some answers say nothing secret by themselves: their callers know what they asked for. */
const SILENT = /^(the number|a list field, as|a type whose)/;

function entities(selection: string): string {
  return `query ($of: [_Any!]!) { _entities(representations: $of) { __typename ${selection} } }`;
}

function ref(type: string, id: string) {
  return { __typename: type, id };
}

const LANES = [
  ['without plugins', []],
  ['with a plugin that sees every step', [everyHook()]],
] as const;

const WORLDS = LANES.flatMap(([lane, plugins]) =>
  (
    [
      ['fields and types', scopes, WAYS],
      ['a list', scopesOfList, LIST_WAYS],
    ] as const
  ).map(([what, overrides, ways]) => [`${what}, ${lane}`, { plugins, overrides, ways }] as const),
);

describe.each(WORLDS)('%s', (_, { plugins, overrides, ways }) => {
  let world: GatewayOverFake;
  const { schema } = peopleService();
  beforeAll(async () => {
    world = await startGatewayOverFake(
      { schema },
      {
        snapshot: peopleSdl,
        overrides,
        config: { auth: keys, mutations: 'all' },
        plugins: [...plugins],
      },
    );
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test.each(ways)('a caller with the scopes reads %s', async (way, query, variables) => {
    const answer = await world.ask(query, variables, as('all'));
    expect(answer.errors).toBeUndefined();
    if (!SILENT.test(way)) expect(JSON.stringify(answer.data)).toContain(SECRET);
  });

  test.each(ways)(
    'without them the whole operation is refused: %s',
    async (_way, query, variables) => {
      const { upstream, ask } = world;
      const before = upstream.received.length;
      const answer = await ask(query, variables, as('few'));
      expect(answer).toEqual({
        errors: [
          {
            message: expect.stringMatching(
              /^The (field|type) \S+ needs the scope "(pii|pay)", which this credential does not have\./,
            ),
            extensions: { code: 'FORBIDDEN' },
          },
        ],
      });
      expect(upstream.received.length).toBe(before);
    },
  );
});
