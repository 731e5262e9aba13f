import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { sideBySide } from './side-by-side.ts';

/** Names with a meaning in JavaScript or its libraries, but not in GraphQL. */
const NAMES =
  'then constructor toString toJSON hasOwnProperty prototype length data errors extensions query variables null'.split(
    ' ',
  );

const INPUTS = NAMES.map((name) => `${name}: Json`).join(' ');
const ECHOES = NAMES.map((name) => `echo_${name}(${name}: Json, in: In): Json`).join(' ');

test('arguments, variables and input fields of these names reach the service', async () => {
  const sdl = `
    scalar Json
    input In { ${INPUTS} }
    type Query { ${ECHOES} }`;
  const echoes = NAMES.map((name) => [`echo_${name}`, (args: object) => args]);
  const rootValue = Object.fromEntries(echoes) as object;
  const world = await sideBySide({ schema: buildSchema(sdl), service: { rootValue } });
  for (const name of NAMES) {
    await world.expectSame({
      query: `query ($${name}: Json, $in: In) { echo_${name}(${name}: $${name}, in: $in) }`,
      variables: { [name]: { [name]: 1 }, in: { [name]: [name] } },
    });
  }
});

test('upstream types keep their names even if the gateway uses these names itself', async () => {
  const schema = buildSchema(
    `type Query { pageInfo: PageInfo service: _Service entity: _Entity any(in: _Any): _Any }
     type PageInfo { a: Int }
     type _Service { sdl: String }
     scalar _Any
     union _Entity = PageInfo`,
    { assumeValid: true },
  );
  const rootValue = {
    pageInfo: { a: 1 },
    service: { sdl: 'of its own' },
    entity: { __typename: 'PageInfo', a: 2 },
    any: ({ in: value }: { in: unknown }) => value,
  };
  const world = await sideBySide({ schema, service: { rootValue } });
  await world.expectSame({
    query: '{ pageInfo { ...F } } fragment F on PageInfo { a __typename }',
  });
  await world.expectSame({ query: '{ pageInfo { __typename t: __typename } }' });
  await world.expectSame({ query: '{ entity { ... on PageInfo { a __typename } } }' });
  await world.expectSame({ query: '{ __type(name: "PageInfo") { name fields { name } } }' });
});

test('upstream types called _Service and _Any, which every subgraph has, are served under other names', async () => {
  const schema = buildSchema(
    `type Query { service: _Service any(in: _Any): _Any }
     type _Service { sdl: String }
     scalar _Any`,
    { assumeValid: true },
  );
  const rootValue = {
    service: { sdl: 'own' },
    any: ({ in: value }: { in: unknown }) => value,
  };
  const world = await sideBySide({ schema, service: { rootValue } });
  const { through } = await world.both({
    query: '{ service { ... on Upstream_Service { sdl __typename } } }',
  });
  expect(through.data).toBe('{"service":{"sdl":"own","__typename":"Upstream_Service"}}');
  const echoed = await world.through({
    query: 'query ($in: Upstream_Any) { any(in: $in) }',
    variables: { in: { __typename: 'PageInfo' } },
  });
  expect(echoed.data).toBe('{"any":{"__typename":"PageInfo"}}');
});
