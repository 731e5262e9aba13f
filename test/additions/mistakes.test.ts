import { RenameRootFields } from '@graphql-tools/wrap';
import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { OperatorMistake } from '../../src/errors.ts';
import type { Additions } from '../../src/additions/additions.ts';
import { withAdditions } from '../../src/additions/with-additions.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { servedOffline } from '../support/gateway/served.ts';

const served = servedOffline(
  `${documentedSdl} extend schema { mutation: Mutation } type Mutation { hire: Int }`,
);
const typeDefs = 'extend type Person { fullName: String }';
const resolve = () => 'x';
const person = (name: string, resolver: unknown = resolve) => ({
  resolvers: { Person: { [name]: resolver as typeof resolve } },
});
const service = (sdl: string): Additions => ({ subschemas: [{ schema: buildSchema(sdl) }] });

function mistake(additions: Additions): string {
  try {
    withAdditions(served, additions);
  } catch (error) {
    expect(error).toBeInstanceOf(OperatorMistake);
    return (error as Error).message;
  }
  return 'no mistake';
}

test.each<[says: string, Additions]>([
  ['Cannot extend type "Persn"', { typeDefs: 'extend type Persn { a: Int }' }],
  [
    'Field "Person.firstName" already exists',
    { typeDefs: 'extend type Person { firstName: Int }' },
  ],
  [
    'typeDefs has @requiresScopes. Write scopes of added fields and types into adapters.json',
    { typeDefs: 'type Own @requiresScopes(scopes: [["pii"]]) { a: Int }' },
  ],
  ['Person.fullNam defined in resolvers, but not in schema.', person('fullNam')],
  [
    'Body must be a string. Received: [function selectionSet].',
    { typeDefs, ...person('fullName', { selectionSet: () => ({}), resolve }) },
  ],
  [
    'What Person.fullName requires is not in the schema: Cannot query field "frstName" on type "Person".',
    { typeDefs, ...person('fullName', { selectionSet: '{ frstName }', resolve }) },
  ],
  [
    'typeDefs: Syntax Error: Expected ":", found Name "Int".',
    { typeDefs: 'extend type Person { a Int }' },
  ],
  [
    'What Person.b requires: Person.a is in no service.',
    {
      typeDefs: 'extend type Person { a: Int b: Int }',
      ...person('b', { selectionSet: '{ a }', resolve }),
    },
  ],
  [
    'subschemas[0] has no Query.b, by which Person is merged.',
    {
      subschemas: [
        {
          schema: buildSchema('type Query { a: Person } type Person { id: ID rank: Int }'),
          merge: { Person: { selectionSet: '{ id }', fieldName: 'b' } },
        },
      ],
    },
  ],
  [
    'subschemas[0] has no type Person to merge.',
    {
      subschemas: [
        {
          schema: buildSchema('type Query { a: Int }'),
          merge: { Person: { selectionSet: '{ id }', fieldName: 'a' } },
        },
      ],
    },
  ],
  [
    'What Person is merged by is not in the schema: Cannot query field "number" on type "Person".',
    {
      subschemas: [
        {
          schema: buildSchema('type Query { a: Person } type Person { rank: Int }'),
          merge: { Person: { selectionSet: '{ number }', fieldName: 'a' } },
        },
      ],
    },
  ],
  [
    'Named is an interface. Write its resolvers',
    {
      typeDefs: 'interface Named { name: String } type Own implements Named { name: String }',
      resolvers: { Named: { name: resolve } },
    },
  ],
  [
    'Named is an interface. Write its resolvers, and what it is merged by',
    {
      subschemas: [
        {
          schema: buildSchema('type Query { a: Named } interface Named { name: String }'),
          merge: { Named: { selectionSet: '{ name }', fieldName: 'a' } },
        },
      ],
    },
  ],
  ['resolvers has Person.firstName, which the gateway already has.', person('firstName')],
  [
    'Syntax Error: Expected Name, found <EOF>.',
    { typeDefs, ...person('fullName', { selectionSet: '{ firstName', resolve }) },
  ],
  ['subschemas[0] has Query.persons, which', service('type Query { persons: Int }')],
  [
    'subschemas[0] has Mutation.hire, which',
    service('type Query { a: Int } type Mutation { hire: Int }'),
  ],
  [
    'subscriptions, which the gateway does not serve',
    service('type Query { a: Int } type Subscription { b: Int }'),
  ],
])('a mistake is reported at the start: %s', (says, additions) => {
  expect(mistake(additions)).toContain(says);
});

test('all mistakes are reported at once', () => {
  const two = { ...service('type Query { persons: Int }'), ...person('firstName') };
  expect(mistake(two)).toContain('has 2 mistakes');
});

test('a second service whose transforms rename what the gateway has is no mistake', () => {
  const transforms = [new RenameRootFields((_, name) => `their${name}`)];
  const [{ schema } = expect.unreachable()] = service('type Query { persons: Int }').subschemas!;
  expect(mistake({ subschemas: [{ schema, transforms }] })).toBe('no mistake');
});

test('empty additions leave the schema unchanged', () => {
  for (const empty of [{}, { typeDefs: [' '], resolvers: [], subschemas: [] }]) {
    expect(withAdditions(served, empty).schema).toBe(served.schema);
  }
});
