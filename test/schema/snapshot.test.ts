import {
  buildSchema,
  introspectionFromSchema,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { readSnapshot } from '../../src/schema/snapshot.ts';

test.each([
  ['a syntax error, with its line', '\ntype Query { a: ', / \(\S+, line 2\): Syntax Error/],
  ['an empty file', '', /Syntax Error: Unexpected <EOF>/],
  ['no query type', 'type NoQuery { a: Int }', /Query root type must be provided/],
  ['an unknown directive', 'type Query { salary: Int @inaccessible }', /Unknown directive "@inac/],
  ['several mistakes', 'type Query { a: No1 b: No2 }', /Unknown type "No1"\. \(and 1 more\) Corr/],
  ['other JSON', '{ "openapi": "3.0.0" }', /has no __schema with types/],
])('a snapshot with %s is refused in one message that says what to do', (_, text, mistake) => {
  const read = () => readSnapshot(text, 'upstream.graphql');
  expect(read).toThrow(mistake);
  expect(read).toThrow(/upstream\.graphql.* Correct the file, or set RECRUITING_SCHEMA to another/);
});

test('subscriptions and the directive @defer are not served', () => {
  const unserved = 'type Subscription { b: Int } directive @defer on INLINE_FRAGMENT';
  const { schema } = readSnapshot(`type Query { a: Int } ${unserved}`, 'upstream.graphql');
  expect(printSchema(schema)).toBe('type Query {\n  a: Int\n}');
});

const LISTS = `
  type Query { persons(first: Int, after: String, order: Order): Page!, person(id: ID!): Person, odd(by: By!): Int }
  type Page { items: [Person!]!, pageInfo: Info! }
  type Info { hasNextPage: Boolean!, endCursor: String }
  type Person { id: ID!, old: Old }
  type Old implements Aged { name: String, aged: Int }
  interface Aged { aged: Int }
  union Either = Person | Old
  directive @tag(name: String) on FIELD
  enum Order { UP }
  input By { name: String }
`;

describe('the JSON of an introspection is a snapshot', () => {
  test.each(['with data around it', 'without data'])('%s', (form) => {
    const described = introspectionFromSchema(buildSchema(LISTS));
    const text = JSON.stringify(form === 'without data' ? described : { data: described });
    const { schema, warnings } = readSnapshot(text, 'schema.json');
    expect(warnings).toEqual([]);
    expect(printSchema(schema)).toBe(printSchema(lexicographicSortSchema(buildSchema(LISTS))));
  });

  type Part = Record<string, unknown>;
  type Change = (part: (name: string) => Part) => void;
  const wrong = (part: Part, kind: string) =>
    void (part['type'] = { kind: 'OBJECT', name: kind, ofType: null });

  const NO_TYPE = 'its name is not one of GraphQL, or the schema does not have its type.';

  test.each<[string, Change, string[]]>([
    [
      'a field of a type that is not there',
      (part) => wrong(part('Person.old'), 'Gone'),
      [`Person.old: ${NO_TYPE}`],
    ],
    [
      'a field of an introspection type',
      (part) => wrong(part('Person.old'), '__Type'),
      [`Person.old: ${NO_TYPE}`],
    ],
    [
      'an optional argument of a type that is not there',
      (part) => wrong(part('Query.persons.order'), 'Gone'),
      [`Query.persons.order: ${NO_TYPE}`],
    ],
    [
      'a default value that is not GraphQL',
      (part) => void (part('Query.persons.first')['defaultValue'] = 'Optional[5'),
      ['the default value of Query.persons.first: it is not a GraphQL value.'],
    ],
    [
      'a type without a name of GraphQL, and what refers to it',
      (part) => {
        part('Old')['name'] = 'Old-1';
        wrong(part('Person.old'), 'Old-1');
      },
      ['Person.old', 'Old-1', 'Aged.Old', 'Either.Old'].map((place) => `${place}: ${NO_TYPE}`),
    ],
    [
      'an interface that is not there',
      (part) => void ((part('Old')['interfaces'] as Part[])[0]!['name'] = 'Gone'),
      [`Old.Gone: ${NO_TYPE}`],
    ],
  ])('it is used without %s, and a warning says where', (_, change, where) => {
    const described = introspectionFromSchema(buildSchema(LISTS)) as unknown as {
      __schema: { types: Part[] };
    };
    change((path) =>
      path.split('.').reduce<Part>((at, name) => {
        const inside = ['types', 'fields', 'inputFields', 'args'].flatMap(
          (list) => (at[list] as Part[] | null | undefined) ?? [],
        );
        return inside.find((part) => part['name'] === name)!;
      }, described.__schema),
    );
    const { schema, warnings } = readSnapshot(JSON.stringify(described), 'schema.json');
    expect(warnings).toEqual(
      where.map((each) => `The schema of the service is used without ${each}`),
    );
    expect(printSchema(schema)).toContain('persons(after: String');
  });
});
