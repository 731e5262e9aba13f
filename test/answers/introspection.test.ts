import {
  buildClientSchema,
  executeSync,
  getIntrospectionQuery,
  parse,
  type IntrospectionQuery,
} from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';

const WHOLE = getIntrospectionQuery({
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
});
const NAMED = 'query ($n: String!) { __type(name: $n) { name fields { name } } }';
const SKIPPED =
  'query ($s: Boolean!) { __schema { t: __typename types @skip(if: $s) { name } queryType { name @include(if: $s) kind } } }';

test('introspection is answered as graphql-js executes it', async () => {
  await using gateway = await startGatewayOverService({ persons: 0 });
  const { data } = await gateway.ask(getIntrospectionQuery({ specifiedByUrl: true }));
  const schema = buildClientSchema(data as unknown as IntrospectionQuery);
  for (const [query, variables] of [
    [WHOLE, {}],
    [NAMED, { n: 'Person' }],
    [NAMED, { n: 'None' }],
    [SKIPPED, { s: true }],
    [SKIPPED, { s: false }],
    ['{ __schema { queryType { name } queryType { k: kind ... on __Type { name } } } }', {}],
  ] as const) {
    const expected = executeSync({ schema, document: parse(query), variableValues: variables });
    expect(await gateway.ask(query, variables)).toEqual(JSON.parse(JSON.stringify(expected)));
  }
});
