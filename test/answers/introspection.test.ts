import {
  buildClientSchema,
  executeSync,
  getIntrospectionQuery,
  parse,
  type IntrospectionQuery,
} from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';

const NAMED = 'query ($n: String!) { __type(name: $n) { name fields { name } } }';
const SKIPPED =
  'query ($s: Boolean!) { __schema { t: __typename types @skip(if: $s) { name } queryType { name @include(if: $s) kind } } }';

const QUERIES: readonly (readonly [query: string, variables?: Record<string, unknown>])[] = [
  [
    getIntrospectionQuery({
      specifiedByUrl: true,
      directiveIsRepeatable: true,
      schemaDescription: true,
      inputValueDeprecation: true,
      oneOf: true,
    }),
  ],
  [NAMED, { n: 'Person' }],
  [NAMED, { n: 'None' }],
  [
    'query ($d: Boolean! = true) { __type(name: "Query") { fields(includeDeprecated: $d) { name } } }',
    { d: false },
  ],
  [SKIPPED, { s: true }],
  [SKIPPED, { s: false }],
  ['{ __schema { queryType { name } queryType { k: kind ... on __Type { name } } } }'],
];

test('introspection is answered as graphql-js executes it', async () => {
  await using gateway = await startGatewayOverFake({ persons: 0 });
  const { data } = await gateway.ask(getIntrospectionQuery({ specifiedByUrl: true }));
  const schema = buildClientSchema(data as unknown as IntrospectionQuery);
  for (const [query, variables] of QUERIES) {
    const expected = executeSync({ schema, document: parse(query), variableValues: variables });
    const answer = await gateway.ask(query, variables);
    expect(answer, query).toEqual(JSON.parse(JSON.stringify(expected)));
    expect(await gateway.ask(query, variables)).toEqual(answer);
  }
});

test('the fields of `_service` may be skipped', async () => {
  await using gateway = await startGatewayOverFake({ persons: 0 });
  const query = 'query ($s: Boolean!) { _service { __typename sdl @skip(if: $s) } }';
  expect(await gateway.ask(query, { s: true })).toEqual({
    data: { _service: { __typename: '_Service' } },
  });
});
