import type { SubschemaConfig } from '@graphql-tools/delegate';
import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { OperatorMistake } from '../../src/errors.ts';
import { readConfig } from '../../src/config.ts';
import type { Additions } from '../../src/additions/additions.ts';
import { withAdditions } from '../../src/additions/with-additions.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { servedOnce } from '../support/gateway/served-once.ts';

const served = servedOnce(
  documentedSdl,
  readConfig({}, () => ''),
  undefined,
);
const resolve = () => 'x';
const typeDefs = 'extend type Person { fullName: String }';
const other = (sdl: string): SubschemaConfig => ({ schema: buildSchema(sdl) });

function mistake(additions: Additions): string {
  try {
    withAdditions(served, additions);
  } catch (error) {
    expect(error).toBeInstanceOf(OperatorMistake);
    return (error as Error).message;
  }
  return 'no mistake';
}

test.each<[string, Additions, string]>([
  ['an unknown type', { typeDefs: 'extend type Persn { a: Int }' }, 'Cannot extend type "Persn"'],
  [
    'a field of an unknown type',
    { typeDefs: 'extend type Person { a: Badge }', resolvers: { Person: { a: resolve } } },
    'Unknown type "Badge"',
  ],
  [
    'a field that is there',
    { typeDefs: 'extend type Person { firstName: Int }' },
    'typeDefs adds Person.firstName, which the gateway already has.',
  ],
  [
    'a type that is there',
    { typeDefs: 'type Person { id: Int }' },
    'typeDefs adds Person.id, which the gateway already has.',
  ],
  [
    'a scope in SDL',
    {
      typeDefs: 'extend type Person { fullName: String @requiresScopes(scopes: [["pii"]]) }',
      resolvers: { Person: { fullName: resolve } },
    },
    'typeDefs has @requiresScopes in Person. Write scopes of added fields and types into adapters.json',
  ],
  ['a scalar that is there', { typeDefs: 'scalar _Any' }, 'typeDefs changes _Any'],
  [
    'a resolver without a field',
    { resolvers: { Person: { fullNam: resolve } } },
    'Person.fullNam defined in resolvers, but not in schema.',
  ],
  [
    'a resolver for a field that is there',
    { resolvers: { Person: { firstName: resolve } } },
    'resolvers has Person.firstName, which the gateway already has.',
  ],
  [
    'a resolver for a scalar',
    { resolvers: { _Any: {} } },
    'resolvers has _Any, a type of the gateway',
  ],
  [
    'a selection set that does not parse',
    { typeDefs, resolvers: { Person: { fullName: { selectionSet: '{ firstName', resolve } } } },
    'The selectionSet of Person, `{ firstName`, is not valid',
  ],
  [
    'a root field of a service that is there',
    { subschemas: [other('type Query { persons: Int }')] },
    'subschemas[0] has Query.persons, which the gateway already has.',
  ],
  [
    'a field with another type in a service',
    {
      subschemas: [
        other(
          'type Query { a: PersonPage } type PersonPage { items: [Person!] } type Person { id: ID! }',
        ),
      ],
    },
    'PersonPage.items is of the type [Person!]! in the gateway, and of another one in subschemas.',
  ],
  [
    'subscriptions',
    { subschemas: [other('type Query { a: Int } type Subscription { b: Int }')] },
    'subscriptions, which the gateway does not serve',
  ],
])('%s is a mistake that is reported at the start', (_, additions, message) => {
  expect(mistake(additions)).toContain(message);
});

test('all mistakes are reported at once', () => {
  const message = mistake({
    typeDefs: 'extend type Person { firstName: Int }',
    resolvers: { Person: { firstName: resolve } },
  });
  expect(message).toContain('has 2 mistakes');
});

test('empty additions leave the schema unchanged', () => {
  expect(withAdditions(served, {})).toBeUndefined();
  expect(withAdditions(served, { typeDefs: [], resolvers: [], subschemas: [] })).toBeUndefined();
});
